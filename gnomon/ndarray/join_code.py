"""Native code for the usual statement: an operator of two arrays, an array and a number, or one.

`join(own, a, b)`, or `join(own, a)`, enters it in the window of the thread whose `Own` comes first,
as `pending.pair` and `pending.single` do by Python's means, and gives the pending result. It gives
None, with nothing done, for anything unusual: other operands, a chain that is new, a window that is
full or not open. It decides everything before it changes anything, and looks again, right before it
does, that its own allocations (which may run the collector, and so any code) left the window as it
was.

Slots are read and written where they lie (see `join.py`); only functions of Python's stable
interface are called. The record, in words:

    0  the class of arrays
    1  rules of two arrays: a dictionary by their layouts
    2  rules of one array, or of an array and a number: the same; none where the number is part of
       the operator
    3  the classes float and int
    5  what counts the changes of settings, and the name of its count
"""

from __future__ import annotations

from gnomon.engine.strike_code import FREE, SLOTS

_DECLARED = """
@False = external global i64
@None = external global i64
declare ptr @PyDict_GetItem(ptr, ptr)
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare void @PyErr_Clear()
declare ptr @PyErr_Occurred()
declare i32 @PyList_Append(ptr, ptr)
declare i64 @PyList_Size(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyNumber_Float(ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare i64 @PyObject_Size(ptr)
declare ptr @PyTuple_Pack(i64, ...)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
"""

_PARTS = """
define internal i1 @usual(ptr %own, ptr %window, ptr %r) {
  %large = call ptr @slot(ptr %own, i64 <Own.large>)
  %no.large = icmp eq ptr %large, @None
  %closed = call ptr @slot(ptr %window, i64 <Window.closed>)
  %open = icmp eq ptr %closed, @False
  %busy = call ptr @slot(ptr %window, i64 <Window.busy>)
  %idle = icmp eq ptr %busy, @False
  %eager = call ptr @slot(ptr %window, i64 <Window.eager>)
  %lazy = icmp eq ptr %eager, @False
  %one = and i1 %no.large, %open
  %two = and i1 %idle, %lazy
  %all = and i1 %one, %two
  br i1 %all, label %settings, label %no
settings:
  %changes.at = getelementptr ptr, ptr %r, i64 5
  %changes = load ptr, ptr %changes.at
  %name.at = getelementptr ptr, ptr %r, i64 6
  %name = load ptr, ptr %name.at
  %now = call ptr @PyObject_GetAttr(ptr %changes, ptr %name)
  %now.number = call i64 @PyLong_AsLongLong(ptr %now)
  call void @Py_DecRef(ptr %now)
  %known = call ptr @slot(ptr %own, i64 <Own.settings>)
  %known.number = call i64 @PyLong_AsLongLong(ptr %known)
  %same = icmp eq i64 %now.number, %known.number
  ret i1 %same
no:
  ret i1 false
}

define internal ptr @number(ptr %window, ptr %array, i64 %next, ptr %key.at) {
  store ptr null, ptr %key.at
  %before = call ptr @slot(ptr %array, i64 <Array._window>)
  %mine = icmp eq ptr %before, %window
  br i1 %mine, label %result, label %other
result:
  %index = call ptr @slot(ptr %array, i64 <Array._index>)
  call void @Py_IncRef(ptr %index)
  ret ptr %index
other:
  %settled = icmp eq ptr %before, @None
  %chunk = call ptr @slot(ptr %array, i64 <Array._chunk>)
  %some = icmp ne ptr %chunk, null
  %placed = and i1 %settled, %some
  br i1 %placed, label %memory, label %no
memory:
  %shared = call ptr @slot(ptr %chunk, i64 <Chunk.shared>)
  %own = icmp eq ptr %shared, @False
  %ctx = call ptr @slot(ptr %chunk, i64 <Chunk.ctx>)
  %ctx.wanted = call ptr @slot(ptr %window, i64 <Window.ctx>)
  %here = icmp eq ptr %ctx, %ctx.wanted
  %fits = and i1 %own, %here
  br i1 %fits, label %sure, label %no
sure:
  %there = call i1 @free(ptr %chunk)
  br i1 %there, label %leaf, label %no
leaf:
  %address = call ptr @slot(ptr %array, i64 <Array._address>)
  %layout = call ptr @slot(ptr %array, i64 <Array._layout>)
  %key = call ptr (i64, ...) @PyTuple_Pack(i64 2, ptr %address, ptr %layout)
  %places = call ptr @slot(ptr %window, i64 <Window.places>)
  %found = call ptr @PyDict_GetItem(ptr %places, ptr %key)
  %known = icmp ne ptr %found, null
  br i1 %known, label %again, label %new
again:
  call void @Py_IncRef(ptr %found)
  call void @Py_DecRef(ptr %key)
  ret ptr %found
new:
  store ptr %key, ptr %key.at
  %n = xor i64 %next, -1
  %made = call ptr @PyLong_FromLongLong(i64 %n)
  ret ptr %made
no:
  ret ptr null
}

define internal i64 @size(ptr %array, ptr %key) {
  %old = icmp eq ptr %key, null
  br i1 %old, label %none, label %new
new:
  %chunk = call ptr @slot(ptr %array, i64 <Array._chunk>)
  %nbytes = call ptr @slot(ptr %chunk, i64 <Chunk.nbytes>)
  %size = call i64 @PyLong_AsLongLong(ptr %nbytes)
  ret i64 %size
none:
  ret i64 0
}

define internal void @enter(ptr %window, ptr %array, ptr %key, ptr %number) {
  %old = icmp eq ptr %key, null
  br i1 %old, label %done, label %new
new:
  %chunk = call ptr @slot(ptr %array, i64 <Array._chunk>)
  %read = call ptr @slot(ptr %window, i64 <Window.read>)
  %r0 = call i32 @PyList_Append(ptr %read, ptr %chunk)
  %address = call ptr @slot(ptr %array, i64 <Array._address>)
  %addresses = call ptr @slot(ptr %window, i64 <Window.addresses>)
  %r1 = call i32 @PyList_Append(ptr %addresses, ptr %address)
  %promised = call ptr @slot(ptr %chunk, i64 <Chunk.promised>)
  %r2 = call i32 @PyList_Append(ptr %promised, ptr %window)
  %places = call ptr @slot(ptr %window, i64 <Window.places>)
  %r3 = call i32 @PyDict_SetItem(ptr %places, ptr %key, ptr %number)
  br label %done
done:
  ret void
}
"""

JOIN = (
    _DECLARED
    + FREE
    + SLOTS
    + _PARTS
    + """
define ptr @join(ptr %self, ptr %args, i64 %count) {
entry:
  %a.key.at = alloca ptr
  %b.key.at = alloca ptr
  store ptr null, ptr %a.key.at
  store ptr null, ptr %b.key.at
  %r = call ptr @PyLong_AsVoidPtr(ptr %self)
  %own = load ptr, ptr %args
  %a.at = getelementptr ptr, ptr %args, i64 1
  %a = load ptr, ptr %a.at
  %other = icmp sgt i64 %count, 2
  %b.which = select i1 %other, i64 2, i64 0
  %b.at = getelementptr ptr, ptr %args, i64 %b.which
  %b = load ptr, ptr %b.at
  %main = load ptr, ptr %r
  %a.type = call ptr @slot(ptr %a, i64 <type>)
  %a.array = icmp eq ptr %a.type, %main
  br i1 %a.array, label %first, label %never
first:
  %a.tape = call ptr @slot(ptr %a, i64 <Array._tape>)
  %a.untaped = icmp eq ptr %a.tape, @None
  %a.layout = call ptr @slot(ptr %a, i64 <Array._layout>)
  %b.type = call ptr @slot(ptr %b, i64 <type>)
  %b.array = icmp eq ptr %b.type, %main
  br i1 %a.untaped, label %second, label %never
second:
  br i1 %b.array, label %two, label %one

two:
  %b.tape = call ptr @slot(ptr %b, i64 <Array._tape>)
  %b.untaped = icmp eq ptr %b.tape, @None
  br i1 %b.untaped, label %two.key, label %never
two.key:
  %b.layout = call ptr @slot(ptr %b, i64 <Array._layout>)
  %two.layouts = call ptr (i64, ...) @PyTuple_Pack(i64 2, ptr %a.layout, ptr %b.layout)
  %pairs.at = getelementptr ptr, ptr %r, i64 1
  %pairs = load ptr, ptr %pairs.at
  br label %learned

one:
  %singles.at = getelementptr ptr, ptr %r, i64 2
  %singles = load ptr, ptr %singles.at
  %own.number = icmp eq ptr %singles, null
  br i1 %own.number, label %never, label %one.count
one.count:
  br i1 %other, label %one.kind, label %lone.key
lone.key:
  %lone.layouts = call ptr (i64, ...) @PyTuple_Pack(i64 1, ptr %a.layout)
  br label %learned
one.kind:
  %float.at = getelementptr ptr, ptr %r, i64 3
  %float = load ptr, ptr %float.at
  %is.float = icmp eq ptr %b.type, %float
  br i1 %is.float, label %one.key, label %one.whole
one.whole:
  %int.at = getelementptr ptr, ptr %r, i64 4
  %int = load ptr, ptr %int.at
  %is.int = icmp eq ptr %b.type, %int
  br i1 %is.int, label %one.size, label %never
one.size:
  %whole = call i64 @PyLong_AsLongLong(ptr %b)
  %above = add i64 %whole, 9007199254740992
  %exact = icmp ule i64 %above, 18014398509481984
  %error = call ptr @PyErr_Occurred()
  %well = icmp eq ptr %error, null
  %is.whole = and i1 %exact, %well
  br i1 %is.whole, label %one.key, label %one.large
one.large:
  call void @PyErr_Clear()
  br label %never
one.key:
  %value.new = call ptr @PyNumber_Float(ptr %b)
  %one.layouts = call ptr (i64, ...) @PyTuple_Pack(i64 1, ptr %a.layout)
  br label %learned

learned:
  %rules = phi ptr [%pairs, %two.key], [%singles, %one.key], [%singles, %lone.key]
  %layouts = phi ptr [%two.layouts, %two.key], [%one.layouts, %one.key], [%lone.layouts, %lone.key]
  %value = phi ptr [null, %two.key], [%value.new, %one.key], [null, %lone.key]
  %rule = call ptr @PyDict_GetItem(ptr %rules, ptr %layouts)
  call void @Py_DecRef(ptr %layouts)
  %made = call ptr @PyType_GenericAlloc(ptr %main, i64 0)
  %unknown = icmp eq ptr %rule, null
  %alone = icmp eq ptr %rule, @None
  %no.rule = or i1 %unknown, %alone
  br i1 %no.rule, label %refused, label %opened
opened:
  %shape = call ptr @slot(ptr %rule, i64 <Rule.shape>)
  %windows = call ptr @slot(ptr %own, i64 <Own.windows>)
  %window = call ptr @PyDict_GetItem(ptr %windows, ptr %shape)
  %no.window = icmp eq ptr %window, null
  br i1 %no.window, label %refused, label %look
look:
  %usual = call i1 @usual(ptr %own, ptr %window, ptr %r)
  br i1 %usual, label %numbers, label %refused
numbers:
  %stage = call ptr @slot(ptr %window, i64 <Window.stage>)
  %read = call ptr @slot(ptr %window, i64 <Window.read>)
  %n = call i64 @PyList_Size(ptr %read)
  %i = call ptr @number(ptr %window, ptr %a, i64 %n, ptr %a.key.at)
  %no.i = icmp eq ptr %i, null
  br i1 %no.i, label %refused, label %next
next:
  br i1 %b.array, label %again, label %one.stage
again:
  %a.key = load ptr, ptr %a.key.at
  %a.old = icmp eq ptr %a.key, null
  %a.more = select i1 %a.old, i64 0, i64 1
  %n.b = add i64 %n, %a.more
  %itself = icmp eq ptr %a, %b
  br i1 %itself, label %same, label %different
same:
  call void @Py_IncRef(ptr %i)
  br label %two.stage
different:
  %j.new = call ptr @number(ptr %window, ptr %b, i64 %n.b, ptr %b.key.at)
  %no.j = icmp eq ptr %j.new, null
  br i1 %no.j, label %drop.i, label %both
both:
  %b.key = load ptr, ptr %b.key.at
  %b.old = icmp eq ptr %b.key, null
  %one.old = or i1 %a.old, %b.old
  br i1 %one.old, label %two.stage, label %twins
twins:
  %a.address = call ptr @slot(ptr %a, i64 <Array._address>)
  %a.place = call i64 @PyLong_AsLongLong(ptr %a.address)
  %b.address = call ptr @slot(ptr %b, i64 <Array._address>)
  %b.place = call i64 @PyLong_AsLongLong(ptr %b.address)
  %one.place = icmp eq i64 %a.place, %b.place
  br i1 %one.place, label %drop.j, label %two.stage
two.stage:
  %j = phi ptr [%i, %same], [%j.new, %both], [%j.new, %twins]
  %two.entry = call ptr (i64, ...) @PyTuple_Pack(i64 3, ptr %rule, ptr %i, ptr %j)
  br label %stage.look
one.stage:
  %one.entry = call ptr (i64, ...) @PyTuple_Pack(i64 2, ptr %rule, ptr %i)
  br label %stage.look
stage.look:
  %k = phi ptr [%j, %two.stage], [null, %one.stage]
  %entry.key = phi ptr [%two.entry, %two.stage], [%one.entry, %one.stage]
  %after = call ptr @slot(ptr %stage, i64 <Stage.after>)
  %follows = call ptr @PyDict_GetItem(ptr %after, ptr %entry.key)
  call void @Py_DecRef(ptr %entry.key)
  %new.chain = icmp eq ptr %follows, null
  br i1 %new.chain, label %drop.k, label %room
room:
  %full = call ptr @slot(ptr %follows, i64 <Stage.full>)
  %more = icmp eq ptr %full, @False
  %held = call ptr @slot(ptr %window, i64 <Window.held>)
  %held.before = call i64 @PyLong_AsLongLong(ptr %held)
  %a.key.now = load ptr, ptr %a.key.at
  %b.key.now = load ptr, ptr %b.key.at
  %a.size = call i64 @size(ptr %a, ptr %a.key.now)
  %b.size = call i64 @size(ptr %b, ptr %b.key.now)
  %sizes = add i64 %a.size, %b.size
  %held.now = add i64 %held.before, %sizes
  %little = icmp sle i64 %held.now, <HELD>
  %stage.now = call ptr @slot(ptr %window, i64 <Window.stage>)
  %stage.same = icmp eq ptr %stage, %stage.now
  %read.now = call ptr @slot(ptr %window, i64 <Window.read>)
  %n.now = call i64 @PyList_Size(ptr %read.now)
  %n.same = icmp eq i64 %n, %n.now
  %fits = and i1 %more, %little
  %as.before = and i1 %stage.same, %n.same
  %go = and i1 %fits, %as.before
  br i1 %go, label %still, label %drop.k
still:
  %still.usual = call i1 @usual(ptr %own, ptr %window, ptr %r)
  br i1 %still.usual, label %commit, label %drop.k

commit:
  call void @enter(ptr %window, ptr %a, ptr %a.key.now, ptr %i)
  call void @enter(ptr %window, ptr %b, ptr %b.key.now, ptr %k)
  %grown = icmp ne i64 %sizes, 0
  br i1 %grown, label %weigh, label %given
weigh:
  %held.new = call ptr @PyLong_FromLongLong(i64 %held.now)
  call void @set(ptr %window, i64 <Window.held>, ptr %held.new)
  call void @Py_DecRef(ptr %held.new)
  br label %given
given:
  %no.value = icmp eq ptr %value, null
  br i1 %no.value, label %result, label %note
note:
  %values = call ptr @slot(ptr %window, i64 <Window.numbers>)
  %noted = call i32 @PyList_Append(ptr %values, ptr %value)
  br label %result
result:
  %layout = call ptr @slot(ptr %follows, i64 <Stage.layout>)
  call void @set(ptr %made, i64 <Array._layout>, ptr %layout)
  call void @set(ptr %made, i64 <Array._tape>, ptr @None)
  call void @set(ptr %made, i64 <Array._window>, ptr %window)
  %index = call ptr @slot(ptr %follows, i64 <Stage.index>)
  call void @set(ptr %made, i64 <Array._index>, ptr %index)
  %results = call ptr @slot(ptr %window, i64 <Window.results>)
  %entered = call i32 @PyList_Append(ptr %results, ptr %made)
  call void @set(ptr %window, i64 <Window.stage>, ptr %follows)
  call void @Py_DecRef(ptr %i)
  call void @drop(ptr %k)
  call void @drop(ptr %a.key.now)
  call void @drop(ptr %b.key.now)
  call void @drop(ptr %value)
  ret ptr %made

drop.j:
  call void @Py_DecRef(ptr %j.new)
  br label %drop.i
drop.k:
  call void @drop(ptr %k)
  br label %drop.i
drop.i:
  call void @Py_DecRef(ptr %i)
  br label %refused
refused:
  %a.key.left = load ptr, ptr %a.key.at
  %b.key.left = load ptr, ptr %b.key.at
  call void @drop(ptr %a.key.left)
  call void @drop(ptr %b.key.left)
  call void @drop(ptr %value)
  call void @Py_DecRef(ptr %made)
  br label %never
never:
  call void @Py_IncRef(ptr @None)
  ret ptr @None
}
"""
)
