"""Native code for the usual pushes: `push_sync`, and a prepared operator's.

Usual is: for the ordinary workers of the processor, no priority, at most a few live variables that
has no pending readers, called from outside of gnomon. All else, and what is wrong, is left to the
method in Python, with nothing done.
"""

from __future__ import annotations

from gnomon.engine.state_code import COMMON

_PARTS = """
; whether a function may be entered from here
define internal i1 @entered.from(ptr %engine) {
  %kind = call ptr @known(i64 <.KIND>)
  %ours = call i1 @is(ptr %engine, i64 <type>, ptr %kind)
  %unlocked = call i1 @unlocked(ptr %engine)
  %may = and i1 %ours, %unlocked
  br i1 %may, label %look, label %no
look:
  %no.late = call i1 @is(ptr %engine, i64 <EngineState._late>, ptr @None)
  %no.bulk = call i1 @is(ptr %engine, i64 <EngineState._bulking>, ptr @False)
  %no.work_queue = call i1 @is(ptr %engine, i64 <EngineState._work_queue>, ptr @None)
  %work_queue = xor i1 %no.work_queue, true
  %manned = call i1 @empty(ptr %engine, i64 <EngineState._hiring>)
  %nothing.late = call i1 @empty(ptr %engine, i64 <EngineState._deferred>)
  %alone = call i1 @empty(ptr %engine, i64 <EngineState._behind>)
  %no.held = and i1 %no.late, %no.bulk
  %one = and i1 %no.held, %alone
  %two = and i1 %manned, %nothing.late
  %three = and i1 %one, %work_queue
  %all = and i1 %two, %three
  ret i1 %all
no:
  ret i1 false
}

; a list of variables as a tuple, a new reference; null for what is none
define internal ptr @listed(ptr %given) {
  %tuple = call ptr @known(i64 <.TUPLE>)
  %list = call ptr @known(i64 <.LIST>)
  %missing = icmp eq ptr %given, null
  br i1 %missing, label %nothing, label %look
nothing:
  %empty = call ptr @known(i64 <.NOTHING>)
  call void @Py_IncRef(ptr %empty)
  ret ptr %empty
look:
  %is.tuple = call i1 @is(ptr %given, i64 <type>, ptr %tuple)
  br i1 %is.tuple, label %itself, label %other
itself:
  call void @Py_IncRef(ptr %given)
  ret ptr %given
other:
  %is.list = call i1 @is(ptr %given, i64 <type>, ptr %list)
  br i1 %is.list, label %convert, label %no
convert:
  %made = call ptr @PyList_AsTuple(ptr %given)
  ret ptr %made
no:
  ret ptr null
}

; whether all in a tuple are live variables, each once; if `written`, without pending readers
define internal i1 @fit(ptr %vars, i1 %written) {
entry:
  %var.class = call ptr @known(i64 <.VAR>)
  %n = call i64 @PyTuple_Size(ptr %vars)
  %few = icmp slt i64 %n, 9
  br i1 %few, label %head, label %no
head:
  %i = phi i64 [0, %entry], [%i.next, %next]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %one, label %yes
one:
  %var = call ptr @PyTuple_GetItem(ptr %vars, i64 %i)
  %class = call ptr @slot(ptr %var, i64 <type>)
  %is.var = call i32 @PyType_IsSubtype(ptr %class, ptr %var.class)
  %variable = icmp ne i32 %is.var, 0
  br i1 %variable, label %live, label %no
live:
  %undeleted = call i1 @is(ptr %var, i64 <Var.deleted>, ptr @False)
  br i1 %undeleted, label %promises, label %no
promises:
  br i1 %written, label %promised, label %twice.head
promised:
  %unpromised = call i1 @empty(ptr %var, i64 <Var.pending_readers>)
  br i1 %unpromised, label %twice.head, label %no
twice.head:
  %j = phi i64 [0, %promises], [0, %promised], [%j.next, %twice]
  %j.more = icmp slt i64 %j, %i
  br i1 %j.more, label %twice, label %next
twice:
  %before = call ptr @PyTuple_GetItem(ptr %vars, i64 %j)
  %same = icmp eq ptr %before, %var
  %j.next = add i64 %j, 1
  br i1 %same, label %no, label %twice.head
next:
  %i.next = add i64 %i, 1
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}

; whether two tuples have no element in common
define internal i1 @apart(ptr %a, ptr %b) {
entry:
  %n = call i64 @PyTuple_Size(ptr %a)
  %m = call i64 @PyTuple_Size(ptr %b)
  br label %rows
rows:
  %i = phi i64 [0, %entry], [%i.next, %row.end]
  %i.more = icmp slt i64 %i, %n
  br i1 %i.more, label %row, label %yes
row:
  %x = call ptr @PyTuple_GetItem(ptr %a, i64 %i)
  br label %head
head:
  %j = phi i64 [0, %row], [%j.next, %pair]
  %j.more = icmp slt i64 %j, %m
  br i1 %j.more, label %pair, label %row.end
pair:
  %y = call ptr @PyTuple_GetItem(ptr %b, i64 %j)
  %same = icmp eq ptr %x, %y
  %j.next = add i64 %j, 1
  br i1 %same, label %no, label %head
row.end:
  %i.next = add i64 %i, 1
  br label %rows
yes:
  ret i1 true
no:
  ret i1 false
}

; `push_site`: the caller's code and where it is in that; null within gnomon
define internal ptr @site() {
  %frame = call ptr @PyEval_GetFrame()
  %none = icmp eq ptr %frame, null
  br i1 %none, label %no, label %look
look:
  %code = call ptr @PyFrame_GetCode(ptr %frame)
  %name = call ptr @known(i64 <.FILENAME>)
  %file = call ptr @PyObject_GetAttr(ptr %code, ptr %name)
  %package = call ptr @known(i64 <.PACKAGE>)
  %within = call i64 @PyUnicode_Tailmatch(
    ptr %file, ptr %package, i64 0, i64 9223372036854775807, i32 -1)
  call void @Py_DecRef(ptr %file)
  %outside = icmp eq i64 %within, 0
  br i1 %outside, label %place, label %gnomon
place:
  %last = call i32 @PyFrame_GetLasti(ptr %frame)
  %wide = sext i32 %last to i64
  %offset = call ptr @PyLong_FromLongLong(i64 %wide)
  %made = call ptr (i64, ...) @PyTuple_Pack(i64 2, ptr %code, ptr %offset)
  call void @Py_DecRef(ptr %offset)
  call void @Py_DecRef(ptr %code)
  ret ptr %made
gnomon:
  call void @Py_DecRef(ptr %code)
  br label %no
no:
  ret ptr null
}

; `make_job`, for no device and no priority; null for no memory
define internal ptr @job(
  ptr %fn, i64 %kind, ptr %const, ptr %mutate, ptr %label, ptr %site, ptr %operator
) {
  %class = call ptr @known(i64 <.JOB>)
  %kind.number = call ptr @known(i64 %kind)
  %zero = call ptr @known(i64 <.ZERO>)
  %job = call ptr @PyType_GenericAlloc(ptr %class, i64 0)
  %none = icmp eq ptr %job, null
  br i1 %none, label %done, label %fill
fill:
  call void @set(ptr %job, i64 <Job.fn>, ptr %fn)
  call void @set(ptr %job, i64 <Job.kind>, ptr %kind.number)
  call void @set(ptr %job, i64 <Job.const>, ptr %const)
  call void @set(ptr %job, i64 <Job.mutate>, ptr %mutate)
  call void @set(ptr %job, i64 <Job.ctx>, ptr @None)
  call void @set(ptr %job, i64 <Job.priority>, ptr %zero)
  call void @set(ptr %job, i64 <Job.label>, ptr %label)
  call void @set(ptr %job, i64 <Job.copy>, ptr @False)
  call void @set(ptr %job, i64 <Job.site>, ptr %site)
  call void @set(ptr %job, i64 <Job.failure>, ptr @None)
  call void @set(ptr %job, i64 <Job.interrupt>, ptr @None)
  call void @set(ptr %job, i64 <Job.operator>, ptr %operator)
  br label %done
done:
  ret ptr %job
}

; enters a function for the workers; whether it did
define internal i1 @enter(
  ptr %engine, ptr %fn, ptr %const, ptr %mutate, ptr %label, ptr %operator
) {
  %site = call ptr @site()
  %nowhere = icmp eq ptr %site, null
  br i1 %nowhere, label %no, label %make
make:
  %job = call ptr @job(ptr %fn, i64 <.SYNC>, ptr %const, ptr %mutate, ptr %label, ptr %site,
                       ptr %operator)
  call void @Py_DecRef(ptr %site)
  %none = icmp eq ptr %job, null
  br i1 %none, label %error, label %admitting
error:
  call void @PyErr_Clear()
  ret i1 false
admitting:
  %all = call i1 @admit(ptr %engine, ptr %job)
  br i1 %all, label %ready, label %done
ready:
  %work_queue = call ptr @slot(ptr %engine, i64 <EngineState._work_queue>)
  call void @put.by(ptr %work_queue, ptr %job)
  br label %done
done:
  call void @Py_DecRef(ptr %job)
  ret i1 true
no:
  ret i1 false
}

; whether a parameter was left out, or has the value that it then has
define internal i1 @usual(ptr %given, i64 %which, ptr %value) {
  %at = getelementptr ptr, ptr %given, i64 %which
  %found = load ptr, ptr %at
  %missing = icmp eq ptr %found, null
  %same = icmp eq ptr %found, %value
  %usual = or i1 %missing, %same
  ret i1 %usual
}

; puts arguments in the order of their parameters, whose `n` names begin at word `names`
define internal i1 @sorted(
  ptr %args, i64 %count, ptr %keywords, ptr %given, i64 %names, i64 %n
) {
entry:
  %fits = icmp sle i64 %count, %n
  br i1 %fits, label %by.place, label %no
by.place:
  %i = phi i64 [0, %entry], [%i.next, %copy]
  %i.more = icmp slt i64 %i, %n
  br i1 %i.more, label %copy, label %named
copy:
  %from = getelementptr ptr, ptr %args, i64 %i
  %to = getelementptr ptr, ptr %given, i64 %i
  store ptr null, ptr %to
  %there = icmp slt i64 %i, %count
  %source = select i1 %there, ptr %from, ptr %to
  %argument = load ptr, ptr %source
  store ptr %argument, ptr %to
  %i.next = add i64 %i, 1
  br label %by.place
named:
  %none = icmp eq ptr %keywords, null
  br i1 %none, label %yes, label %measure
measure:
  %words = call i64 @PyTuple_Size(ptr %keywords)
  br label %head
head:
  %k = phi i64 [0, %measure], [%k.next, %store]
  %k.more = icmp slt i64 %k, %words
  br i1 %k.more, label %look, label %yes
look:
  %name = call ptr @PyTuple_GetItem(ptr %keywords, i64 %k)
  br label %compare
compare:
  %p = phi i64 [0, %look], [%p.next, %other]
  %p.more = icmp slt i64 %p, %n
  br i1 %p.more, label %one, label %no
one:
  %word = add i64 %names, %p
  %parameter = call ptr @known(i64 %word)
  %it = icmp eq ptr %parameter, %name
  br i1 %it, label %place, label %other
other:
  %p.next = add i64 %p, 1
  br label %compare
place:
  %slot = getelementptr ptr, ptr %given, i64 %p
  %old = load ptr, ptr %slot
  %twice = icmp ne ptr %old, null
  br i1 %twice, label %no, label %store
store:
  %which = add i64 %count, %k
  %value.at = getelementptr ptr, ptr %args, i64 %which
  %value = load ptr, ptr %value.at
  store ptr %value, ptr %slot
  %k.next = add i64 %k, 1
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}

; the method in Python with the same arguments
define internal ptr @python(i64 %method, ptr %self, ptr %args, i64 %count, ptr %keywords) {
entry:
  %none = icmp eq ptr %keywords, null
  br i1 %none, label %sized, label %named
named:
  %n = call i64 @PyTuple_Size(ptr %keywords)
  br label %sized
sized:
  %words = phi i64 [0, %entry], [%n, %named]
  %beside = add i64 %count, %words
  %all = add i64 %beside, 1
  %bytes = mul i64 %all, 8
  %vector = call ptr @PyMem_Malloc(i64 %bytes)  ; a stack does not hold a million arguments
  %no.memory = icmp eq ptr %vector, null
  br i1 %no.memory, label %error, label %first
error:
  %raised = call ptr @PyErr_NoMemory()
  ret ptr %raised
first:
  store ptr %self, ptr %vector
  br label %head
head:
  %i = phi i64 [0, %first], [%i.next, %copy]
  %more = icmp slt i64 %i, %beside
  br i1 %more, label %copy, label %call
copy:
  %from = getelementptr ptr, ptr %args, i64 %i
  %argument = load ptr, ptr %from
  %i.next = add i64 %i, 1
  %to = getelementptr ptr, ptr %vector, i64 %i.next
  store ptr %argument, ptr %to
  br label %head
call:
  %function = call ptr @known(i64 %method)
  %places = add i64 %count, 1
  %answer = call ptr @PyObject_Vectorcall(ptr %function, ptr %vector, i64 %places, ptr %keywords)
  call void @PyMem_Free(ptr %vector)
  ret ptr %answer
}
"""

_PUSH_SYNC = """
define internal i1 @pushed(ptr %engine, ptr %given) {
  %fn = load ptr, ptr %given
  %missing = icmp eq ptr %fn, null
  br i1 %missing, label %no, label %usual
usual:
  %zero = call ptr @known(i64 <.ZERO>)
  %ctx = call i1 @usual(ptr %given, i64 1, ptr @None)
  %priority = call i1 @usual(ptr %given, i64 4, ptr %zero)
  %copy = call i1 @usual(ptr %given, i64 6, ptr @False)
  %callable = call i32 @PyCallable_Check(ptr %fn)
  %function = icmp ne i32 %callable, 0
  %may = call i1 @entered.from(ptr %engine)
  %one = and i1 %ctx, %priority
  %two = and i1 %copy, %function
  %three = and i1 %one, %two
  %go = and i1 %three, %may
  br i1 %go, label %lists, label %no
lists:
  %label.at = getelementptr ptr, ptr %given, i64 5
  %name = load ptr, ptr %label.at
  %unnamed = icmp eq ptr %name, null
  %label = select i1 %unnamed, ptr @None, ptr %name
  %const.at = getelementptr ptr, ptr %given, i64 2
  %const.given = load ptr, ptr %const.at
  %const = call ptr @listed(ptr %const.given)
  %no.const = icmp eq ptr %const, null
  br i1 %no.const, label %no, label %second
second:
  %mutate.at = getelementptr ptr, ptr %given, i64 3
  %mutate.given = load ptr, ptr %mutate.at
  %mutate = call ptr @listed(ptr %mutate.given)
  %no.mutate = icmp eq ptr %mutate, null
  br i1 %no.mutate, label %drop, label %check
check:
  %const.fit = call i1 @fit(ptr %const, i1 false)
  br i1 %const.fit, label %check.mutate, label %end
check.mutate:
  %mutate.fit = call i1 @fit(ptr %mutate, i1 true)
  br i1 %mutate.fit, label %check.both, label %end
check.both:
  %apart = call i1 @apart(ptr %const, ptr %mutate)
  br i1 %apart, label %enter, label %end
enter:
  %entered = call i1 @enter(
    ptr %engine, ptr %fn, ptr %const, ptr %mutate, ptr %label, ptr @None)
  br label %end
end:
  %well = phi i1 [false, %check], [false, %check.mutate], [false, %check.both], [%entered, %enter]
  call void @Py_DecRef(ptr %mutate)
  br label %drop
drop:
  %answer = phi i1 [false, %second], [%well, %end]
  call void @Py_DecRef(ptr %const)
  ret i1 %answer
no:
  ret i1 false
}

define ptr @push_sync(ptr %self, ptr %args, i64 %count, ptr %keywords) {
  %given = alloca ptr, i64 7
  %sorted = call i1 @sorted(
    ptr %args, i64 %count, ptr %keywords, ptr %given, i64 <.PARAMETERS>, i64 7)
  br i1 %sorted, label %try, label %python
try:
  %collects = call i32 @PyGC_Disable()
  %pushed = call i1 @pushed(ptr %self, ptr %given)
  call void @collecting(i32 %collects)
  br i1 %pushed, label %done, label %python
done:
  call void @Py_IncRef(ptr @None)
  ret ptr @None
python:
  %answer = call ptr @python(
    i64 <.PUSH_SYNC>, ptr %self, ptr %args, i64 %count, ptr %keywords)
  ret ptr %answer
}
"""

PUSHES = COMMON + _PARTS + _PUSH_SYNC
