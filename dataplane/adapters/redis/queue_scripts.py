"""The write queue's steps as scripts, each atomic on the server.

A queued write is an entry of one of the lanes, which are streams with one consumer group. Who takes from a lane holds
it: a key that names the owner and expires. All writes with one order key lie in one lane, so that their order holds
between processes. The group's one consumer is called as the group: owners are in the holds, and end with them.

Keys of every script: the lanes, then their holds in the same order, then operations (a hash: operation → lane:id), and
what was set aside (a stream).
"""

LANES = 8
"""Fixed, for all processes must agree: how many can take at once. Unmeasured."""

GROUP = "memplane"

_PREAMBLE = """
local lanes = (#KEYS - 2) / 2
local operations, aside = KEYS[#KEYS - 1], KEYS[#KEYS]
local function stream_of(lane) return KEYS[lane + 1] end
local function hold_of(lane) return KEYS[lanes + lane + 1] end
"""

PUT = (
    _PREAMBLE
    + """
-- ARGV: lane, most entries, operation, then the entry's fields. Returns 0 when there is no room.
local lane, most, operation = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
if redis.call('HEXISTS', operations, operation) == 1 then return 1 end
if redis.call('HLEN', operations) >= most then return 0 end
local id = redis.call('XADD', stream_of(lane), '*', unpack(ARGV, 4))
redis.call('HSET', operations, operation, lane .. ':' .. id)
return 1
"""
)

TAKE = (
    _PREAMBLE
    + """
-- ARGV: group, owner, page size, ms after which what is held comes free, lane to begin with, then lane:id of each entry
-- that the owner has.
-- Returns {lane, id, fields, deliveries} of each entry.
local group, owner, claim_ms = ARGV[1], ARGV[2], ARGV[4]
local room = tonumber(ARGV[3])
local found, known = {}, {}
for place = 6, #ARGV do known[ARGV[place]] = true end

local function call_group(stream, ...)
    local answer = redis.pcall(...)
    if type(answer) == 'table' and answer.err and string.find(answer.err, 'NOGROUP', 1, true) then
        redis.call('XGROUP', 'CREATE', stream, group, '0')
        answer = redis.call(...)
    end
    return answer
end

local function add(lane, entry, deliveries)
    found[#found + 1] = {lane, entry[1], entry[2], deliveries}
    room = room - 1
end

-- What is in the owner's hands without its knowledge: an answer was lost. It comes again, which is no delivery.
local function add_lost(lane, stream)
    local held = call_group(stream, 'XPENDING', stream, group, '-', '+', #ARGV - 5 + room)
    for _, pending in ipairs(held) do
        if room > 0 and not known[lane .. ':' .. pending[1]] then
            local kept = redis.call('XCLAIM', stream, group, group, 0, pending[1], 'RETRYCOUNT', pending[4])
            if kept[1] and kept[1][2] then add(lane, kept[1], pending[4]) end
        end
    end
end

local function add_abandoned(lane, stream)
    local claimed = call_group(stream, 'XAUTOCLAIM', stream, group, group, claim_ms, '0-0', 'COUNT', room)
    for _, entry in ipairs(claimed[2]) do
        if entry and entry[2] then
            local pending = redis.call('XPENDING', stream, group, entry[1], entry[1], 1)
            add(lane, entry, pending[1][4])
        end
    end
end

local function add_new(lane, stream)
    local answer = call_group(stream, 'XREADGROUP', 'GROUP', group, group, 'COUNT', room, 'STREAMS', stream, '>')
    if answer then
        for _, entry in ipairs(answer[1][2]) do add(lane, entry, 1) end
    end
end

-- A full Redis refuses to store more until a script has written: what follows must work, or nothing would drain it.
redis.call('XDEL', aside, '0-1')
for step = 0, lanes - 1 do
    local lane = (tonumber(ARGV[5]) + step) % lanes
    local stream, hold = stream_of(lane), hold_of(lane)
    if room > 0 and redis.call('XLEN', stream) > 0 then
        local holder = redis.call('GET', hold)
        if not holder or holder == owner then
            local before = #found
            if holder == owner then add_lost(lane, stream) end
            if room > 0 then add_abandoned(lane, stream) end
            -- A hold may be evicted: then what is not abandoned is in somebody's hands, and so is the lane.
            local mine = holder or redis.call('XPENDING', stream, group)[1] == #found - before
            if room > 0 and mine then add_new(lane, stream) end
            if #found > before then redis.call('SET', hold, owner, 'PX', claim_ms) end
        end
    end
end
return found
"""
)

RENEW = (
    _PREAMBLE
    + """
-- ARGV: group, owner, ms, then lane and id of each entry.
local group, owner, claim_ms = ARGV[1], ARGV[2], ARGV[3]
redis.call('XDEL', aside, '0-1')
for place = 4, #ARGV, 2 do
    local lane, id = tonumber(ARGV[place]), ARGV[place + 1]
    local holder = redis.call('GET', hold_of(lane))
    if not holder or holder == owner then
        local kept = redis.pcall('XCLAIM', stream_of(lane), group, group, 0, id, 'JUSTID')
        if not kept.err and #kept > 0 then redis.call('SET', hold_of(lane), owner, 'PX', claim_ms) end
    end
end
return 1
"""
)

REMOVE = (
    _PREAMBLE
    + """
-- ARGV: group, 1 to keep the entries aside, how many are kept, then lane, id and operation of each entry.
local group, keeps, kept = ARGV[1], ARGV[2] == '1', ARGV[3]
local touched = {}
for place = 4, #ARGV, 3 do
    local lane, id, operation = tonumber(ARGV[place]), ARGV[place + 1], ARGV[place + 2]
    local stream = stream_of(lane)
    local entry = redis.call('XRANGE', stream, id, id)[1]
    redis.call('XACK', stream, group, id)
    redis.call('XDEL', stream, id)
    if keeps and entry then redis.call('XADD', aside, 'MAXLEN', kept, '*', unpack(entry[2])) end
    if redis.call('HGET', operations, operation) == lane .. ':' .. id then
        redis.call('HDEL', operations, operation)
    end
    touched[lane] = true
end
for lane in pairs(touched) do
    local pending = redis.pcall('XPENDING', stream_of(lane), group)
    if pending.err or pending[1] == 0 then redis.call('DEL', hold_of(lane)) end
end
return 1
"""
)

LIST_ASIDE = (
    _PREAMBLE
    + """
-- ARGV: id above which, how many. Returns {id, fields} of each entry that was set aside.
return redis.call('XRANGE', aside, ARGV[1], '+', 'COUNT', ARGV[2])
"""
)

REPLAY = (
    _PREAMBLE
    + """
-- ARGV: id among those set aside, lane and operation of each entry. Returns how many were there.
local replayed = 0
for place = 1, #ARGV, 3 do
    local id, lane, operation = ARGV[place], tonumber(ARGV[place + 1]), ARGV[place + 2]
    local entry = redis.call('XRANGE', aside, id, id)[1]
    if entry then
        if redis.call('HEXISTS', operations, operation) == 0 then
            local added = redis.call('XADD', stream_of(lane), '*', unpack(entry[2]))
            redis.call('HSET', operations, operation, lane .. ':' .. added)
        end
        redis.call('XDEL', aside, id)
        replayed = replayed + 1
    end
end
return replayed
"""
)

FIND = (
    _PREAMBLE
    + """
-- ARGV: operation. Returns the entry's fields, or nothing.
local place = redis.call('HGET', operations, ARGV[1])
if not place then return false end
local lane, id = string.match(place, '^(%d+):(.+)$')
local entry = redis.call('XRANGE', stream_of(tonumber(lane)), id, id)[1]
return entry and entry[2]
"""
)

DEPTH = (
    _PREAMBLE
    + """
-- ARGV: group. Returns how many there are, are taken, and are set aside, and the oldest id of each lane.
local entries, taken, oldest = 0, 0, {}
for lane = 0, lanes - 1 do
    entries = entries + redis.call('XLEN', stream_of(lane))
    local pending = redis.pcall('XPENDING', stream_of(lane), ARGV[1])
    if not pending.err then taken = taken + pending[1] end
    local first = redis.call('XRANGE', stream_of(lane), '-', '+', 'COUNT', 1)[1]
    if first then oldest[#oldest + 1] = first[1] end
end
return {entries, taken, redis.call('XLEN', aside), oldest}
"""
)
