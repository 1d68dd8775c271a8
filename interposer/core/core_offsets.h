/* core_offsets.h - offsets into struct thread that the assembly uses; asserted in thread.c. */
#define TH_SELF 0
#define TH_PENDING 8
