-- SPDX-License-Identifier: Apache-2.0
-- crm_store.lua: counts a request in a window on Redis (contract 4.1, 16.1)
--
-- KEYS[1]  the window's key
-- ARGV[1]  the limit, at least 1
-- Returns 1 if the request is admitted or 0, the requests left, microseconds
-- until the oldest counted request leaves the window (after a refusal: until
-- the next would be admitted), and the time in microseconds since 1970.
--
-- The value is what crm_limit.c has in shared memory: head, tail, size, last
-- and shift (doubles), then a ring of SIZE times: the low 32 bits of
-- microseconds. Requests TAIL to HEAD - 1 are counted. LAST is the time of the
-- last one. SHIFT is added to Redis' clock: it grows if the clock goes back, so
-- that windows go on from LAST.
--
-- A refusal writes nothing, unless the clock went back. The cost of a call does
-- not depend on the limit, except for its logarithm.
local key, limit = KEYS[1], tonumber(ARGV[1])
local WINDOW, HEADER, FORMAT = 60000000, 40, '>ddddd'
local clock = redis.call('TIME')
local time = clock[1] * 1000000 + clock[2]
local head, tail, size, last, shift = 0, 0, limit, time, 0
local header = redis.call('GETRANGE', key, 0, HEADER - 1)
if #header == HEADER then
    head, tail, size, last, shift = struct.unpack(FORMAT, header)
end
local now = time + shift
local went_back = now < last
if went_back then
    shift = shift + last - now
    now = last
end

-- Return where the time of request n is.
local function place(n)
    return HEADER + 4 * (n % size)
end

-- Return the age of request n in microseconds.
local function age(n)
    local at = place(n)
    local when = struct.unpack('>I4', redis.call('GETRANGE', key, at, at + 3))
    return (now - when) % 4294967296
end

-- Make room for a higher limit.
local function grow()
    local from, to, live = place(tail), place(head), ''
    if from < to then
        live = redis.call('GETRANGE', key, from, to - 1)
    elseif tail < head then
        live = redis.call('GETRANGE', key, from, HEADER + 4 * size - 1)
        if to > HEADER then
            live = live .. redis.call('GETRANGE', key, HEADER, to - 1)
        end
    end
    head, tail, size = head - tail, 0, limit
    redis.call('SET', key, struct.pack(FORMAT, head, tail, size, last, shift)
        .. live)
end

-- Requests that have left the window: all, none, or up to one that is searched.
if now - last >= WINDOW then
    tail = head
elseif tail < head and age(tail) >= WINDOW then
    local low, high = tail + 1, head
    while low < high do
        local middle = math.floor((low + high) / 2)
        if age(middle) >= WINDOW then
            low = middle + 1
        else
            high = middle
        end
    end
    tail = low
end

local admitted = head - tail < limit
if admitted then
    if limit > size then
        grow()
    end
    redis.call('SETRANGE', key, place(head),
        struct.pack('>I4', now % 4294967296))
    head = head + 1
    last = now
end
if admitted or went_back then
    redis.call('SETRANGE', key, 0,
        struct.pack(FORMAT, head, tail, size, last, shift))
    redis.call('PEXPIRE', key, WINDOW / 1000 + 1000)
end
-- Hosts with a higher limit may have counted more than this limit. Then more
-- than the oldest request must leave before one fits.
local leaves = admitted and tail or head - limit
return {admitted and 1 or 0, math.max(limit - (head - tail), 0),
    WINDOW - age(leaves), time}
