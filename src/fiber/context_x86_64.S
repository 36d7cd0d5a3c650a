// The switch for x86-64, System V calling convention. context.hpp has the contract, and
// context_inline.hpp the same four moves without a call.
//
// The frame of a saved context, from its sp upward (24 bytes):
//    0  MXCSR (4), x87 control word (2), padding (2)     8  rbp     16  where to go on
//
// Whoever resumes it jumps there. The other callee-saved registers are not in the frame: what is
// jumped to either has them on its own stack (smarm_switch, smarm_start) or has told its compiler
// that they are lost (the inline moves).
//
// rbp stands next to an address of code, so the frame-pointer chain of a parked context is intact:
// a walker starts at sp + 8.
//
// Floating-point control is callee-saved by the ABI and so travels with the context. It is saved on
// each switch, not tracked: the store costs less than a comparison that could mispredict.

#if defined(__x86_64__)

        .text

// An ordinary frame that keeps the callee-saved registers, and below it that of a saved context
// which goes on at `1`. The message arrives in rax and rdx.
.macro save_context save_sp
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        pushq   %rbx
        .cfi_offset %rbx, -24
        pushq   %r12
        .cfi_offset %r12, -32
        pushq   %r13
        .cfi_offset %r13, -40
        pushq   %r14
        .cfi_offset %r14, -48
        pushq   %r15
        .cfi_offset %r15, -56
        leaq    1f(%rip), %rax
        pushq   %rax
        pushq   %rbp
        subq    $8, %rsp
        stmxcsr (%rsp)
        fnstcw  4(%rsp)
        movq    %rsp, (\save_sp)
.endm

// Where a context that save_context made goes on.
.macro goes_on
1:
        endbr64
        popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %rbx
        popq    %rbp
        .cfi_def_cfa %rsp, 8
        ret
.endm

// Goes on with the context saved as \sp; the message is in rax and rdx already. By a jump: calls
// and returns stay paired within each context (context.hpp). From the line that exchanges rsp the
// caller's frame can no longer be told from here, so a walk by unwind tables ends.
.macro resume sp
        .cfi_remember_state
        movq    \sp, %rsp
        .cfi_undefined %rip
        ldmxcsr (%rsp)
        fldcw   4(%rsp)
        movq    8(%rsp), %rbp
        movq    16(%rsp), %rcx
        addq    $24, %rsp
        jmpq    *%rcx
        .cfi_restore_state
.endm

// Enters \entry on the stack that ends at \top, with the message already in rdi and rsi. The entry
// finds the address of the end mark where its return address belongs and rsp % 16 == 8, as after a
// call; a frame pointer of zero ends the other kind of walk.
.macro enter_fresh top, entry
        .cfi_remember_state
        movq    \top, %rsp
        .cfi_undefined %rip
        andq    $-16, %rsp
        ldmxcsr smarm_fresh_control(%rip)
        fldcw   4+smarm_fresh_control(%rip)
        xorl    %ebp, %ebp
        leaq    smarm_stack_end(%rip), %rax
        pushq   %rax
        jmpq    *\entry
        .cfi_restore_state
.endm

// switch_message smarm_switch(void** save_sp rdi, void* to_sp rsi, void* from rdx, what rcx)
        .globl  smarm_switch
        .type   smarm_switch, @function
        .p2align 6
smarm_switch:
        .cfi_startproc
        endbr64
        save_context %rdi
        movq    %rdx, %rax
        movq    %rcx, %rdx
        resume  %rsi
        goes_on
        .cfi_endproc
        .size   smarm_switch, . - smarm_switch

// switch_message smarm_start(void** save_sp rdi, void* stack_top rsi, entry rdx, from rcx, what r8)
        .globl  smarm_start
        .type   smarm_start, @function
        .p2align 5
smarm_start:
        .cfi_startproc
        endbr64
        save_context %rdi
        movq    %rcx, %rdi
        movq    %rsi, %rcx
        movq    %r8, %rsi
        enter_fresh %rcx, %rdx
        goes_on
        .cfi_endproc
        .size   smarm_start, . - smarm_start

// void smarm_leave(void* to_sp rdi, void* from rsi, what rdx)
        .globl  smarm_leave
        .type   smarm_leave, @function
        .p2align 5
smarm_leave:
        .cfi_startproc
        endbr64
        movq    %rsi, %rax
        resume  %rdi
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
        .globl  smarm_stack_end
        .hidden smarm_stack_end
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

// MXCSR: round to nearest, all exceptions masked, no flush to zero; the x87 control word: likewise,
// extended precision.
        .section .rodata
        .globl  smarm_fresh_control
        .hidden smarm_fresh_control
        .type   smarm_fresh_control, @object
        .p2align 3
smarm_fresh_control:
        .long   0x1F80
        .short  0x037F
        .short  0
        .size   smarm_fresh_control, . - smarm_fresh_control

#endif

        .section .note.GNU-stack, "", %progbits
