// The switch for x86-64, System V calling convention. context.hpp has the contract.
//
// The frame of a saved context, from its sp upward (64 bytes):
//    0  MXCSR (4), x87 control word (2), padding (2)
//    8  r15     16  r14     24  r13     32  r12     40  rbx     48  rbp     56  return address
//
// rbp stands next to the return address, so the frame-pointer chain of a parked context is intact:
// a walker starts at sp + 48. Every saved context has the same frame, so one set of unwind
// directives is right before and after the line that exchanges rsp.
//
// Floating-point control is callee-saved by the ABI and so travels with the context. It is saved on
// each switch, not tracked: the store costs less than a comparison that could mispredict.

#if defined(__x86_64__)

#define FRAME_SIZE 56

        .text

// Pushes the frame below the return address. The CFA rule holds for any parked context as well.
.macro save_context
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbp, 0
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset %r15, 0
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        stmxcsr (%rsp)
        fnstcw  4(%rsp)
.endm

// Pops the frame and leaves rsp at the return address.
.macro restore_context
        ldmxcsr (%rsp)
        fldcw   4(%rsp)
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r15
        popq    %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r14
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore %r12
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbx
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore %rbp
.endm

// Enters \entry on the stack that ends at \top, with the message already in rdi and rsi. The entry
// finds the address of the end mark where its return address belongs and rsp % 16 == 8, as after a
// call; a frame pointer of zero ends the other kind of walk.
.macro enter_fresh top, entry
        movq    \top, %rsp
        .cfi_undefined %rip
        andq    $-16, %rsp
        ldmxcsr default_mxcsr(%rip)
        fldcw   default_control_word(%rip)
        xorl    %ebp, %ebp
        leaq    smarm_stack_end(%rip), %rax
        pushq   %rax
        jmpq    *\entry
.endm

// switch_message smarm_switch(void** save_sp rdi, void* to_sp rsi, void* from rdx, what rcx)
        .globl  smarm_switch
        .type   smarm_switch, @function
        .p2align 6
smarm_switch:
        .cfi_startproc
        endbr64
        save_context
        movq    %rsp, (%rdi)
        movq    %rsi, %rsp
        movq    %rdx, %rax
        movq    %rcx, %rdx
        restore_context
        ret
        .cfi_endproc
        .size   smarm_switch, . - smarm_switch

// switch_message smarm_start(void** save_sp rdi, void* stack_top rsi, entry rdx, from rcx, what r8)
        .globl  smarm_start
        .type   smarm_start, @function
        .p2align 5
smarm_start:
        .cfi_startproc
        endbr64
        save_context
        movq    %rsp, (%rdi)
        movq    %rcx, %rdi
        movq    %rsi, %rcx
        movq    %r8, %rsi
        enter_fresh %rcx, %rdx
        .cfi_endproc
        .size   smarm_start, . - smarm_start

// void smarm_leave(void* to_sp rdi, void* from rsi, what rdx)
        .globl  smarm_leave
        .type   smarm_leave, @function
        .p2align 5
smarm_leave:
        .cfi_startproc
        endbr64
        movq    %rdi, %rsp
        .cfi_adjust_cfa_offset FRAME_SIZE
        .cfi_rel_offset %rbp, 48
        .cfi_rel_offset %rbx, 40
        .cfi_rel_offset %r12, 32
        .cfi_rel_offset %r13, 24
        .cfi_rel_offset %r14, 16
        .cfi_rel_offset %r15, 8
        movq    %rsi, %rax
        restore_context
        // A jump: the return predictor holds the abandoned call chain, and `ret` would follow it.
        popq    %rcx
        .cfi_adjust_cfa_offset -8
        .cfi_register %rip, %rcx
        jmpq    *%rcx
        .cfi_endproc
        .size   smarm_leave, . - smarm_leave

// void smarm_leave_start(void* stack_top rdi, entry rsi, from rdx, what rcx)
        .globl  smarm_leave_start
        .type   smarm_leave_start, @function
        .p2align 5
smarm_leave_start:
        .cfi_startproc
        endbr64
        movq    %rsi, %r8
        movq    %rdi, %r9
        movq    %rdx, %rdi
        movq    %rcx, %rsi
        enter_fresh %r9, %r8
        .cfi_endproc
        .size   smarm_leave_start, . - smarm_leave_start

// The "caller" of every entry: the outermost frame. A walker looks up return address - 1, hence the
// nop before the label. An entry that returns has broken its contract and traps here.
        .type   smarm_stack_bottom, @function
        .p2align 4
smarm_stack_bottom:
        .cfi_startproc
        .cfi_undefined %rip
        nop
smarm_stack_end:
        ud2
        .cfi_endproc
        .size   smarm_stack_bottom, . - smarm_stack_bottom

        .section .rodata
        .p2align 3
default_mxcsr:
        .long   0x1F80          // round to nearest, all exceptions masked, no flush to zero
default_control_word:
        .short  0x037F          // round to nearest, extended precision, all exceptions masked

#endif

        .section .note.GNU-stack, "", %progbits
