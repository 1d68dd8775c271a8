"""System V and POSIX interprocess communication."""

from __future__ import annotations

from interfaces.declare import (
    MAY,
    NEWFD,
    POSITIVE,
    REDO,
    RESTART,
    RESULT,
    SUCCESS,
    WAIT,
    Call,
    Selector,
    Special,
    call,
    case,
    enum,
    flags,
    in_array,
    in_buf,
    in_string,
    in_struct,
    long,
    num,
    out_buf,
    out_struct,
    ptr,
    size,
    special,
    unsigned,
    value,
)  # fmt: skip
from interfaces.model import Arg, Op, Spec

FAMILY = "ipc"

_ARG = value("arg", "hex")

SEMCTL = [
    case(0, "IPC_RMID"),
    case(1, "IPC_SET", in_struct("buf", "semid_ds")),
    case(2, "IPC_STAT", out_struct("buf", "semid_ds")),
    case(3, "IPC_INFO", out_struct("info", "seminfo")),
    case(11, "GETPID"),
    case(12, "GETVAL"),
    case(13, "GETALL", special("array", Special.SEM_ARRAY, out=True)),
    case(14, "GETNCNT"),
    case(15, "GETZCNT"),
    case(16, "SETVAL", num("val")),
    case(17, "SETALL", special("array", Special.SEM_ARRAY, out=False)),
    case(18, "SEM_STAT", out_struct("buf", "semid_ds")),
    case(19, "SEM_INFO", out_struct("info", "seminfo")),
    case(20, "SEM_STAT_ANY", out_struct("buf", "semid_ds")),
]

SHMCTL = [
    case(0, "IPC_RMID"),
    case(1, "IPC_SET", in_struct("buf", "shmid_ds")),
    case(2, "IPC_STAT", out_struct("buf", "shmid_ds")),
    case(3, "IPC_INFO", out_struct("info", "shminfo")),
    case(11, "SHM_LOCK"),
    case(12, "SHM_UNLOCK"),
    case(13, "SHM_STAT", out_struct("buf", "shmid_ds")),
    case(14, "SHM_INFO", out_struct("info", "shm_info")),
    case(15, "SHM_STAT_ANY", out_struct("buf", "shmid_ds")),
]

MSGCTL = [
    case(0, "IPC_RMID"),
    case(1, "IPC_SET", in_struct("buf", "msqid_ds")),
    case(2, "IPC_STAT", out_struct("buf", "msqid_ds")),
    case(3, "IPC_INFO", out_struct("info", "msginfo")),
    case(11, "MSG_STAT", out_struct("buf", "msqid_ds")),
    case(12, "MSG_INFO", out_struct("info", "msginfo")),
    case(13, "MSG_STAT_ANY", out_struct("buf", "msqid_ds")),
]

CALLS: list[Call] = [
    call(29, "shmget", value("key", "ipckey"), size("size"), flags("shmflg", "shmget"), family=FAMILY),
    call(30, "shmat", num("shmid"), ptr("shmaddr"), flags("shmflg", "shmat"), family=FAMILY, treat=REDO,
         returns="ptr"),
    call(31, "shmctl", num("shmid"), enum("cmd", "shmctl"), _ARG, family=FAMILY,
         selector=Selector(1, closed=True),
         case_from=2,
         cases=SHMCTL),
    call(64, "semget", value("key", "ipckey"), num("nsems"), flags("semflg", "ipcget"), family=FAMILY),
    call(65, "semop", num("semid"), in_array("sops", "sembuf", count="nsops"), size("nsops"), family=FAMILY,
         block=WAIT, waits_on="lock"),
    call(66, "semctl", num("semid"), num("semnum"), enum("cmd", "semctl"), _ARG, family=FAMILY,
         selector=Selector(2, closed=True),
         case_from=3, cases=SEMCTL),
    call(67, "shmdt", ptr("shmaddr"), family=FAMILY, treat=REDO),
    call(68, "msgget", value("key", "ipckey"), flags("msgflg", "ipcget"), family=FAMILY),
    call(69, "msgsnd", num("msqid"),
         Arg("msgp", "buffer", count="msgsz", specs=(Spec(Op.FIXED, False, size=8),
         Spec(Op.ARG, False, "msgsz", size=1))),
         size("msgsz"), flags("msgflg", "msgop"), family=FAMILY, block=MAY, waits_on="peer"),
    call(70, "msgrcv", num("msqid"), Arg("msgp", "buffer", count=RESULT, specs=(
        Spec(Op.RESULT, True, "msgsz", POSITIVE, size=1, off=8),
        Spec(Op.FIXED, True, when=SUCCESS, size=8))), size("msgsz"),
         long("msgtyp"), flags("msgflg", "msgop"), family=FAMILY, block=WAIT, waits_on="peer"),
    call(71, "msgctl", num("msqid"), enum("cmd", "msgctl"), _ARG, family=FAMILY,
         selector=Selector(1, closed=True),
         case_from=2,
         cases=MSGCTL),
    call(220, "semtimedop", num("semid"), in_array("sops", "sembuf", count="nsops"), size("nsops"),
         in_struct("timeout", "timespec"), family=FAMILY, block=WAIT, waits_on="lock"),
    call(240, "mq_open", in_string("name"), flags("oflag", "open"), value("mode", "mode"),
         in_struct("attr", "mq_attr"),
         family=FAMILY, flags=NEWFD, returns="fd"),
    call(241, "mq_unlink", in_string("name"), family=FAMILY),
    call(242, "mq_timedsend", value("mqdes", "fd"), in_buf("msg_ptr", size="msg_len"), size("msg_len"),
         unsigned("msg_prio"), in_struct("abs_timeout", "timespec"), family=FAMILY, block=MAY, waits_on="fd",
         flags=RESTART),
    call(243, "mq_timedreceive", value("mqdes", "fd"), out_buf("msg_ptr", size="msg_len"), size("msg_len"),
         out_struct("msg_prio", "u32"), in_struct("abs_timeout", "timespec"), family=FAMILY, block=MAY,
         waits_on="fd",
         flags=RESTART),
    call(244, "mq_notify", value("mqdes", "fd"), in_struct("sevp", "sigevent"), family=FAMILY),
    call(245, "mq_getsetattr", value("mqdes", "fd"), in_struct("newattr", "mq_attr"),
         out_struct("oldattr", "mq_attr"),
         family=FAMILY),
]  # fmt: skip

