-- SPDX-License-Identifier: Apache-2.0
-- crm_store.lua: counts requests in windows on Redis (contract 4.1, 16.1)
--
-- KEYS[i]          a window's key
-- ARGV[2 * i - 1]  its limit, at least 1
-- ARGV[2 * i]      how many requests to count in it, at least 1
-- Returns the time in microseconds since 1970. Then for each key: how many of
-- its requests are admitted, the requests left, and microseconds until the
-- oldest counted request leaves the window (after a refusal: until the next
-- would be admitted).
--
-- The value is like a window of crm_limit.c. It begins with doubles: HEAD,
-- TAIL, SIZE, LAST, FIRST, SHIFT, EXPIRES. A ring of SIZE times follows: the low
-- 32 bits of microseconds. Requests TAIL to HEAD - 1 are counted; FIRST and LAST
-- are the times of these two. SHIFT is added to Redis' clock: it grows if the
-- clock goes back, so that the time of a window never does. EXPIRES is when
-- Redis removes the key.
--
-- A refusal writes nothing unless the clock went back. The cost of a key grows
-- with the logarithm of the limit. Most of it is the cost of Redis commands:
-- three if no request has left the window.
local call, pack, unpack = redis.call, struct.pack, struct.unpack
local WINDOW, KEEP, HEADER, FORMAT = 60000000, 120000000, 56, '>ddddddd'
local clock = call('TIME')
local time = clock[1] * 1000000 + clock[2]
-- The window in which requests are being counted.
local key, limit, now, head, tail, size, first

-- Return the time of request n, which is not older than 2^32 microseconds.
local function at(n)
    local place = HEADER + 4 * (n % size)
    local low = unpack('>I4', call('GETRANGE', key, place, place + 3))
    return now - (now - low) % 4294967296
end

-- Remove requests that have left the window; request TAIL has. Search in steps
-- that double, then bisect the last step.
local function expire()
    local gone, there, step = tail, head, 1
    while gone + step < there and now - at(gone + step) >= WINDOW do
        gone = gone + step
        step = step * 2
    end
    there = math.min(gone + step, head)
    while there - gone > 1 do
        local middle = math.floor((gone + there) / 2)
        if now - at(middle) >= WINDOW then
            gone = middle
        else
            there = middle
        end
    end
    tail = there
    if tail < head then
        first = at(tail)
    end
end

-- Make room for a higher limit.
local function grow()
    local from, to = HEADER + 4 * (tail % size), HEADER + 4 * (head % size)
    local live = ''
    if from < to then
        live = call('GETRANGE', key, from, to - 1)
    elseif tail < head then
        live = call('GETRANGE', key, from, HEADER + 4 * size - 1)
        if to > HEADER then
            live = live .. call('GETRANGE', key, HEADER, to - 1)
        end
    end
    head, tail, size = head - tail, 0, limit
    call('SET', key, string.rep('\0', HEADER) .. live)
end

-- Add count requests, at most as many as SIZE.
local function add(count)
    local place = head % size
    local low = pack('>I4', now % 4294967296)
    local fits = math.min(count, size - place)
    call('SETRANGE', key, HEADER + 4 * place, string.rep(low, fits))
    if fits < count then
        call('SETRANGE', key, HEADER, string.rep(low, count - fits))
    end
    if tail == head then
        first = now
    end
    head = head + count
end

-- Count requests in the window of KEY. Return how many are admitted, the
-- requests left, and the microseconds until the next leaves.
local function charge(count)
    local last, shift, expires
    local header = call('GETRANGE', key, 0, HEADER - 1)
    if #header == HEADER then
        head, tail, size, last, first, shift, expires = unpack(FORMAT, header)
    else
        head, tail, size, last, first, shift, expires
            = 0, 0, limit, time, time, 0, 0
    end
    now = time + shift
    local went_back = now < last
    if went_back then
        shift = shift + last - now
        now = last
    end
    if now - last >= WINDOW then
        tail = head
    elseif tail < head and now - first >= WINDOW then
        expire()
    end
    local admitted = math.max(math.min(limit - (head - tail), count), 0)
    if admitted > 0 then
        if limit > size then
            grow()
            expires = 0
        end
        add(admitted)
        last = now
    end
    if admitted > 0 or went_back then
        local renew = expires < time + WINDOW + 1000000
        if renew then
            expires = time + KEEP
        end
        call('SETRANGE', key, 0,
            pack(FORMAT, head, tail, size, last, first, shift, expires))
        if renew then
            call('PEXPIRE', key, KEEP / 1000)
        end
    end
    -- Hosts with a higher limit may have counted more than this limit. Then more
    -- than the oldest request must leave before one fits.
    local leaves = first
    if admitted < count and head - limit > tail then
        leaves = at(head - limit)
    end
    return admitted, math.max(limit - (head - tail), 0),
        WINDOW - (now - leaves)
end

local answer = {time}
for i = 1, #KEYS do
    key, limit = KEYS[i], tonumber(ARGV[2 * i - 1])
    local n = 3 * i - 1
    answer[n], answer[n + 1], answer[n + 2] = charge(tonumber(ARGV[2 * i]))
end
return answer
