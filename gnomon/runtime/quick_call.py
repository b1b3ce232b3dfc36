"""Native code for functions of expressions that came before; goes with `quick_code.py`.

What a function makes of operands of the same patterns and of the same other arguments is always the
same but for the operands: nodes of the same classes with the same fields. `recall(function,
*arguments)` looks for a *program* that makes them: a tuple that holds, for each node in turn, its
class, its pattern, how many fields follow, and of each its name, where its value is found (the
number of an argument, or of a node behind the last argument; -1 for a value of its own), and that
value. It gives None where there is none. Where the result is a tensor over the memory of an
argument, there are no nodes, and the program is its shape, strides, pattern, and which argument.

    function, mixed arguments, their number -> arguments to compare, program, nodes, bytes further
"""

from __future__ import annotations

MOST = 12  # arguments, and elements of one that is a tuple
NODES = 16

NUMBERS = {"most": MOST}

CALL = """
declare i32 @PyObject_GenericSetAttr(ptr, ptr, ptr)
declare i64 @PyTuple_Size(ptr)

; a whole number of Python's, where it has 64 bits

define internal { i64, i1 } @whole(ptr %x) noinline {
  %type = call ptr @field(ptr %x, i64 <type>)
  %plain = icmp eq ptr %type, @int
  br i1 %plain, label %read, label %no
read:
  %value = call i64 @PyLong_AsLongLong(ptr %x)
  %some = insertvalue { i64, i1 } { i64 0, i1 true }, i64 %value, 0
  %suspect = icmp eq i64 %value, -1
  br i1 %suspect, label %check, label %fine
check:
  %error = call ptr @PyErr_Occurred()
  %large = icmp ne ptr %error, null
  br i1 %large, label %drop, label %fine
fine:
  ret { i64, i1 } %some
drop:
  call void @PyErr_Clear()
  br label %no
no:
  ret { i64, i1 } zeroinitializer
}

; what an argument, or an element of one, is looked for by: its value or its address

define internal i64 @plain(ptr %x) {
  %number = call { i64, i1 } @whole(ptr %x)
  %is = extractvalue { i64, i1 } %number, 1
  %value = extractvalue { i64, i1 } %number, 0
  %address = ptrtoint ptr %x to i64
  %word = select i1 %is, i64 %value, i64 %address
  ret i64 %word
}

define internal i1 @alike(ptr %x, ptr %y) {
  %same = icmp eq ptr %x, %y
  br i1 %same, label %yes, label %compare
compare:
  %a = call { i64, i1 } @whole(ptr %x)
  %b = call { i64, i1 } @whole(ptr %y)
  %a.is = extractvalue { i64, i1 } %a, 1
  %b.is = extractvalue { i64, i1 } %b, 1
  %a.value = extractvalue { i64, i1 } %a, 0
  %b.value = extractvalue { i64, i1 } %b, 0
  %equal = icmp eq i64 %a.value, %b.value
  %both = and i1 %a.is, %b.is
  %all = and i1 %both, %equal
  ret i1 %all
yes:
  ret i1 true
}

; an expression's pattern, null for anything else

define internal ptr @pattern(ptr %x) noinline {
  %is = call i1 @is_a(ptr %x, ptr @Expr)
  br i1 %is, label %read, label %no
read:
  %found = call ptr @field(ptr %x, i64 <Expr.pattern>)
  ret ptr %found
no:
  ret ptr null
}

define internal i64 @size(ptr %x) alwaysinline {
  %type = call ptr @field(ptr %x, i64 <type>)
  %tuple = icmp eq ptr %type, @tuple
  br i1 %tuple, label %ask, label %no
ask:
  %count = call i64 @PyTuple_Size(ptr %x)
  ret i64 %count
no:
  ret i64 -1
}

define internal i64 @mixed(i64 %so.far, i64 %word) alwaysinline {
  %both = xor i64 %so.far, %word
  %spread = mul i64 %both, <mix1>
  %high = lshr i64 %spread, 29
  %result = xor i64 %spread, %high
  ret i64 %result
}

define internal i64 @of_argument(i64 %so.far, ptr %x) {
  %pattern = call ptr @pattern(ptr %x)
  %other = icmp eq ptr %pattern, null
  br i1 %other, label %sized, label %expression
expression:
  %as.word = ptrtoint ptr %pattern to i64
  %of.pattern = call i64 @mixed(i64 %so.far, i64 %as.word)
  ret i64 %of.pattern
sized:
  %count = call i64 @size(ptr %x)
  %single = icmp slt i64 %count, 0
  br i1 %single, label %one, label %loop
one:
  %word = call i64 @plain(ptr %x)
  %of.one = call i64 @mixed(i64 %so.far, i64 %word)
  ret i64 %of.one
loop:
  %k = phi i64 [0, %sized], [%next, %each]
  %now = phi i64 [%so.far, %sized], [%more, %each]
  %in = icmp slt i64 %k, %count
  br i1 %in, label %each, label %done
each:
  %element = call ptr @PyTuple_GetItem(ptr %x, i64 %k)
  %element.word = call i64 @plain(ptr %element)
  %more = call i64 @mixed(i64 %now, i64 %element.word)
  %next = add i64 %k, 1
  br label %loop
done:
  %result = call i64 @mixed(i64 %now, i64 %count)
  ret i64 %result
}

; whether an argument is what was noted: a pattern, a value or the thing itself

define internal i1 @as_noted(ptr %x, ptr %noted) {
  %pattern = call ptr @pattern(ptr %x)
  %other = icmp eq ptr %pattern, null
  br i1 %other, label %sized, label %expression
expression:
  %known = icmp ne ptr %pattern, @None
  %same = icmp eq ptr %pattern, %noted
  %both = and i1 %known, %same
  ret i1 %both
sized:
  %count = call i64 @size(ptr %x)
  %single = icmp slt i64 %count, 0
  br i1 %single, label %one, label %sizes
one:
  %equal = call i1 @alike(ptr %x, ptr %noted)
  ret i1 %equal
sizes:
  %noted.count = call i64 @size(ptr %noted)
  %as.many = icmp eq i64 %count, %noted.count
  br i1 %as.many, label %loop, label %no
loop:
  %k = phi i64 [0, %sizes], [%next, %each]
  %in = icmp slt i64 %k, %count
  br i1 %in, label %each, label %yes
each:
  %a = call ptr @PyTuple_GetItem(ptr %x, i64 %k)
  %b = call ptr @PyTuple_GetItem(ptr %noted, i64 %k)
  %matching = call i1 @alike(ptr %a, ptr %b)
  %next = add i64 %k, 1
  br i1 %matching, label %loop, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

define ptr @recall(ptr %self, ptr %args, i64 %count) {
  %some = icmp sgt i64 %count, 0
  %few = icmp sle i64 %count, <most>
  %fit = and i1 %some, %few
  br i1 %fit, label %mix, label %none
mix:
  %k = phi i64 [1, %0], [%k.next, %mix.one]
  %hash = phi i64 [0, %0], [%hash.next, %mix.one]
  %k.in = icmp slt i64 %k, %count
  br i1 %k.in, label %mix.one, label %look
mix.one:
  %k.at = getelementptr ptr, ptr %args, i64 %k
  %k.arg = load ptr, ptr %k.at
  %hash.next = call i64 @of_argument(i64 %hash, ptr %k.arg)
  %k.next = add i64 %k, 1
  br label %mix
look:
  %function = load i64, ptr %args
  %entry = call ptr @find(i64 %function, i64 %hash, i64 %count, i64 0)
  %unknown = icmp eq ptr %entry, null
  br i1 %unknown, label %none, label %noted
noted:
  %wanted = load ptr, ptr %entry
  br label %compare
compare:
  %c = phi i64 [1, %noted], [%c.next, %compare.one]
  %c.in = icmp slt i64 %c, %count
  br i1 %c.in, label %compare.one, label %make
compare.one:
  %c.at = getelementptr ptr, ptr %args, i64 %c
  %c.arg = load ptr, ptr %c.at
  %c.index = sub i64 %c, 1
  %c.noted = call ptr @PyTuple_GetItem(ptr %wanted, i64 %c.index)
  %c.same = call i1 @as_noted(ptr %c.arg, ptr %c.noted)
  %c.next = add i64 %c, 1
  br i1 %c.same, label %compare, label %none
make:
  %program.at = getelementptr ptr, ptr %entry, i64 1
  %program = load ptr, ptr %program.at
  call void @Py_IncRef(ptr %program)
  %nodes.at = getelementptr i64, ptr %entry, i64 2
  %nodes = load i64, ptr %nodes.at
  %given = getelementptr ptr, ptr %args, i64 1
  %view = icmp eq i64 %nodes, 0
  br i1 %view, label %place, label %build
place:
  %shape = call ptr @PyTuple_GetItem(ptr %program, i64 0)
  %strides = call ptr @PyTuple_GetItem(ptr %program, i64 1)
  %pattern = call ptr @PyTuple_GetItem(ptr %program, i64 2)
  %which.object = call ptr @PyTuple_GetItem(ptr %program, i64 3)
  %which = call i64 @PyLong_AsLongLong(ptr %which.object)
  %bytes.at = getelementptr i64, ptr %entry, i64 3
  %bytes = load i64, ptr %bytes.at
  %source.at = getelementptr ptr, ptr %given, i64 %which
  %source = load ptr, ptr %source.at
  %tensor = call i1 @is_a(ptr %source, ptr @Tensor)
  br i1 %tensor, label %move, label %release
move:
  %viewed = call ptr @moved(ptr %source, ptr %shape, ptr %strides, ptr %pattern, i64 %bytes)
  br label %release
build:
  %given.count = sub i64 %count, 1
  %made = call ptr @run_program(ptr %program, i64 %nodes, ptr %given, i64 %given.count)
  br label %release
release:
  %result = phi ptr [null, %place], [%viewed, %move], [%made, %build]
  call void @Py_DecRef(ptr %program)
  %failed = icmp eq ptr %result, null
  br i1 %failed, label %none, label %done
done:
  ret ptr %result
none:
  call void @PyErr_Clear()
  call void @Py_IncRef(ptr @None)
  ret ptr @None
}

define internal ptr @run_program(ptr %program, i64 %nodes, ptr %given, i64 %count) {
entry:
  %made = alloca ptr, i64 %nodes
  br label %node
node:
  %n = phi i64 [0, %entry], [%n.next, %finished]
  %p = phi i64 [0, %entry], [%f.p, %finished]
  %n.in = icmp slt i64 %n, %nodes
  br i1 %n.in, label %begin, label %release
begin:
  %class = call ptr @PyTuple_GetItem(ptr %program, i64 %p)
  %p.1 = add i64 %p, 1
  %pattern = call ptr @PyTuple_GetItem(ptr %program, i64 %p.1)
  %p.2 = add i64 %p, 2
  %fields.object = call ptr @PyTuple_GetItem(ptr %program, i64 %p.2)
  %fields = call i64 @PyLong_AsLongLong(ptr %fields.object)
  %p.3 = add i64 %p, 3
  %x = call ptr @PyType_GenericAlloc(ptr %class, i64 0)
  %x.at = getelementptr ptr, ptr %made, i64 %n
  store ptr %x, ptr %x.at
  %n.next = add i64 %n, 1
  %no.room = icmp eq ptr %x, null
  br i1 %no.room, label %failed.early, label %head
head:
  call void @put(ptr %x, i64 <Expr.pattern>, ptr %pattern)
  %shape = call ptr @field(ptr %pattern, i64 <Pattern.shape>)
  call void @put(ptr %x, i64 <Expr.shape>, ptr %shape)
  %dtype = call ptr @field(ptr %pattern, i64 <Pattern.dtype>)
  call void @put(ptr %x, i64 <Expr.dtype>, ptr %dtype)
  %exp_type = call ptr @field(ptr %pattern, i64 <Pattern.exp_type>)
  call void @put(ptr %x, i64 <Expr.exp_type>, ptr %exp_type)
  br label %fill
fill:
  %f = phi i64 [0, %head], [%f.next, %set]
  %f.p = phi i64 [%p.3, %head], [%f.p.next, %set]
  %f.in = icmp slt i64 %f, %fields
  br i1 %f.in, label %one, label %finished
one:
  %name = call ptr @PyTuple_GetItem(ptr %program, i64 %f.p)
  %f.p.1 = add i64 %f.p, 1
  %from.object = call ptr @PyTuple_GetItem(ptr %program, i64 %f.p.1)
  %from = call i64 @PyLong_AsLongLong(ptr %from.object)
  %f.p.2 = add i64 %f.p, 2
  %own = icmp slt i64 %from, 0
  br i1 %own, label %constant, label %operand
constant:
  %value.own = call ptr @PyTuple_GetItem(ptr %program, i64 %f.p.2)
  br label %set
operand:
  %outside = icmp slt i64 %from, %count
  br i1 %outside, label %argument, label %earlier
argument:
  %argument.at = getelementptr ptr, ptr %given, i64 %from
  %value.given = load ptr, ptr %argument.at
  br label %set
earlier:
  %index = sub i64 %from, %count
  %earlier.at = getelementptr ptr, ptr %made, i64 %index
  %value.made = load ptr, ptr %earlier.at
  br label %set
set:
  %value = phi ptr [%value.own, %constant], [%value.given, %argument], [%value.made, %earlier]
  %status = call i32 @PyObject_GenericSetAttr(ptr %x, ptr %name, ptr %value)
  %f.next = add i64 %f, 1
  %f.p.next = add i64 %f.p, 3
  %well = icmp eq i32 %status, 0
  br i1 %well, label %fill, label %failed
finished:
  br label %node
failed.early:
  br label %drop
failed:
  br label %drop
drop:
  %left = phi i64 [%n, %failed.early], [%n.next, %failed]
  br label %free
release:
  %last = sub i64 %nodes, 1
  br label %free
free:
  %result = phi i1 [false, %drop], [true, %release]
  %until = phi i64 [%left, %drop], [%last, %release]
  br label %free.loop
free.loop:
  %r = phi i64 [0, %free], [%r.next, %free.one]
  %r.in = icmp slt i64 %r, %until
  br i1 %r.in, label %free.one, label %out
free.one:
  %r.at = getelementptr ptr, ptr %made, i64 %r
  %r.node = load ptr, ptr %r.at
  call void @Py_DecRef(ptr %r.node)
  %r.next = add i64 %r, 1
  br label %free.loop
out:
  br i1 %result, label %give, label %nothing.made
give:
  %given.back.at = getelementptr ptr, ptr %made, i64 %until
  %given.back = load ptr, ptr %given.back.at
  ret ptr %given.back
nothing.made:
  ret ptr null
}
"""
