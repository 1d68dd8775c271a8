/* core_offsets.h - offsets into struct thread that the assembly uses; asserted in thread.c. */
#define TH_SELF 0
#define TH_PENDING 8
#define TH_APP_SP 16
#define TH_FAST_SP 24
#define TH_TAIL 32
#define TH_GATE_IP 40
#define TH_LATE 48
