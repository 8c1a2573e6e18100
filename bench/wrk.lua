-- SPDX-License-Identifier: Apache-2.0
-- wrk.lua: requests picked at random from the file $BENCH_REQUESTS, whose lines
-- are KEY, METHOD, PATH and BODY with tabs between them. "@R@" in a body is a
-- number of its own in each request. With $BENCH_ORDER they come in their
-- order, with $BENCH_KEYS each of those has an Idempotency-Key of its own.
local requests = {}
local count = 0
local serial = 0
local ordered = os.getenv("BENCH_ORDER")
local keys = os.getenv("BENCH_KEYS")
local position = 0

function init(args)
    for line in io.lines(os.getenv("BENCH_REQUESTS")) do
        local key, method, path, body =
            line:match("^([^\t]*)\t([^\t]*)\t([^\t]*)\t?(.*)$")
        local headers = { ["Authorization"] = "Bearer " .. key,
            ["Host"] = wrk.host .. ":" .. wrk.port }
        if body == "" then
            body = nil
        else
            headers["Content-Type"] = "application/json"
        end
        count = count + 1
        if body and body:find("@R@", 1, true) then
            requests[count] = { method, path, headers, body }
        else
            requests[count] = wrk.format(method, path, headers, body)
        end
    end
    math.randomseed(tonumber(os.getenv("BENCH_SEED")))
    -- no other run has the same numbers
    serial = tonumber(os.getenv("BENCH_SEED")) * 1000000
end

function request()
    position = ordered and position % count + 1 or math.random(count)
    local r = requests[position]
    if type(r) == "string" then
        return r
    end
    local body = r[4]:gsub("@R@", function()
        serial = serial + 1
        return string.format("%d", serial)
    end)
    if keys then
        r[3]["Idempotency-Key"] = string.format("bench-%d", serial)
    end
    return wrk.format(r[1], r[2], r[3], body)
end

function done(summary, latency, requests)
    local e = summary.errors
    print(string.format("RESULT %d %d %d %d %d %d %d %d %d",
        summary.requests, summary.duration, latency:percentile(50),
        latency:percentile(99), e.status, e.connect, e.read, e.write,
        e.timeout))
end
