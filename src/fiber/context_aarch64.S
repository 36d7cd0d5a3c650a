// The switch for aarch64, AAPCS64 calling convention. context.hpp has the contract.
//
// The frame of a saved context, from its sp upward (176 bytes):
//    0  x29, x30     16  x19, x20     32  x21, x22     48  x23, x24     64  x25, x26
//   80  x27, x28     96  d8, d9      112  d10, d11    128  d12, d13    144  d14, d15    160  fpcr
//
// x29 and x30 stand at the bottom as a frame record, so a frame-pointer walker starts at sp.
// Every saved context has the same frame, so one set of unwind directives is right before and after
// the line that exchanges sp.

#if defined(__aarch64__)

#define FRAME_SIZE 176

        .text

.macro describe_frame
        .cfi_def_cfa_offset FRAME_SIZE
        .cfi_offset x29, -176
        .cfi_offset x30, -168
        .cfi_offset x19, -160
        .cfi_offset x20, -152
        .cfi_offset x21, -144
        .cfi_offset x22, -136
        .cfi_offset x23, -128
        .cfi_offset x24, -120
        .cfi_offset x25, -112
        .cfi_offset x26, -104
        .cfi_offset x27, -96
        .cfi_offset x28, -88
        .cfi_offset d8, -80
        .cfi_offset d9, -72
        .cfi_offset d10, -64
        .cfi_offset d11, -56
        .cfi_offset d12, -48
        .cfi_offset d13, -40
        .cfi_offset d14, -32
        .cfi_offset d15, -24
.endm

.macro save_context
        sub     sp, sp, FRAME_SIZE
        stp     x29, x30, [sp]
        stp     x19, x20, [sp, 16]
        stp     x21, x22, [sp, 32]
        stp     x23, x24, [sp, 48]
        stp     x25, x26, [sp, 64]
        stp     x27, x28, [sp, 80]
        stp     d8, d9, [sp, 96]
        stp     d10, d11, [sp, 112]
        stp     d12, d13, [sp, 128]
        stp     d14, d15, [sp, 144]
        mrs     x9, fpcr
        str     x9, [sp, 160]
        describe_frame
.endm

// Leaves the return address in x30.
.macro restore_context
        ldr     x9, [sp, 160]
        msr     fpcr, x9
        ldp     x29, x30, [sp]
        ldp     x19, x20, [sp, 16]
        ldp     x21, x22, [sp, 32]
        ldp     x23, x24, [sp, 48]
        ldp     x25, x26, [sp, 64]
        ldp     x27, x28, [sp, 80]
        ldp     d8, d9, [sp, 96]
        ldp     d10, d11, [sp, 112]
        ldp     d12, d13, [sp, 128]
        ldp     d14, d15, [sp, 144]
        add     sp, sp, FRAME_SIZE
        .cfi_def_cfa_offset 0
        .cfi_restore x29
        .cfi_restore x30
        .cfi_restore x19
        .cfi_restore x20
        .cfi_restore x21
        .cfi_restore x22
        .cfi_restore x23
        .cfi_restore x24
        .cfi_restore x25
        .cfi_restore x26
        .cfi_restore x27
        .cfi_restore x28
        .cfi_restore d8
        .cfi_restore d9
        .cfi_restore d10
        .cfi_restore d11
        .cfi_restore d12
        .cfi_restore d13
        .cfi_restore d14
        .cfi_restore d15
.endm

// Enters x16 on the stack that ends at x17, with the message already in x0 and x1. x16, because a
// landing pad of an ordinary function accepts an indirect jump only through x16 or x17.
.macro enter_fresh
        and     x17, x17, -16
        mov     sp, x17
        .cfi_undefined x30
        msr     fpcr, xzr               // round to nearest, no traps, no flush to zero
        mov     x29, xzr
        adr     x30, smarm_stack_end
        br      x16
.endm

// switch_message smarm_switch(void** save_sp x0, void* to_sp x1, void* from x2, what x3)
        .globl  smarm_switch
        .type   smarm_switch, %function
        .p2align 6
smarm_switch:
        .cfi_startproc
        hint    34                      // bti c
        save_context
        mov     x9, sp
        str     x9, [x0]
        mov     sp, x1
        mov     x0, x2
        mov     x1, x3
        restore_context
        ret
        .cfi_endproc
        .size   smarm_switch, . - smarm_switch

// switch_message smarm_start(void** save_sp x0, void* stack_top x1, entry x2, from x3, what x4)
        .globl  smarm_start
        .type   smarm_start, %function
        .p2align 5
smarm_start:
        .cfi_startproc
        hint    34
        save_context
        mov     x9, sp
        str     x9, [x0]
        mov     x17, x1
        mov     x16, x2
        mov     x0, x3
        mov     x1, x4
        enter_fresh
        .cfi_endproc
        .size   smarm_start, . - smarm_start

// void smarm_leave(void* to_sp x0, void* from x1, what x2)
        .globl  smarm_leave
        .type   smarm_leave, %function
        .p2align 5
smarm_leave:
        .cfi_startproc
        hint    34
        mov     sp, x0
        describe_frame
        mov     x0, x1
        mov     x1, x2
        restore_context
        // Here `ret` in spite of the abandoned call chain in the return predictor: a plain branch
        // would need a landing pad at the return address where pages are guarded.
        ret
        .cfi_endproc
        .size   smarm_leave, . - smarm_leave

// void smarm_leave_start(void* stack_top x0, entry x1, from x2, what x3)
        .globl  smarm_leave_start
        .type   smarm_leave_start, %function
        .p2align 5
smarm_leave_start:
        .cfi_startproc
        hint    34
        mov     x17, x0
        mov     x16, x1
        mov     x0, x2
        mov     x1, x3
        enter_fresh
        .cfi_endproc
        .size   smarm_leave_start, . - smarm_leave_start

// The "caller" of every entry: the outermost frame. A walker looks up return address - 1, hence the
// nop before the label. An entry that returns has broken its contract and traps here.
        .type   smarm_stack_bottom, %function
        .p2align 4
smarm_stack_bottom:
        .cfi_startproc
        .cfi_undefined x30
        nop
smarm_stack_end:
        brk     1
        .cfi_endproc
        .size   smarm_stack_bottom, . - smarm_stack_bottom

#endif

        .section .note.GNU-stack, "", %progbits
