-- Goes on where call.lua ends: clears columns, stores chunks, and takes triggers.
for i = 1, clears do
  local heads_key = KEYS[k + 1]
  redis.call('UNLINK', KEYS[k + 2])
  if redis.call('ZREM', heads_key, ARGV[a + 2]) == 1 and redis.call('EXISTS', heads_key) == 0 then
    redis.call('SREM', KEYS[2], ARGV[a + 1])
  end
  k, a = k + 2, a + 2
end

local function store(key, n, ...)
  for first = 1, 2 * n, 1000 do
    redis.call('ZADD', key, 'LT', unpack(ARGV, a + first, a + math.min(first + 999, 2 * n)))
  end
  a = a + 2 * n
end
for i = 1, lists do
  redis.call('SADD', KEYS[2], ARGV[a + 1])
  a = a + 2
  store(KEYS[k + i], tonumber(ARGV[a]))
end
k = k + lists
for i = 1, columns do
  a = a + 1
  store(KEYS[k + i], tonumber(ARGV[a]))
end
k = k + columns

-- Takes what one want asks for.
local function want()
  local list, left, ahead, candidates = ARGV[a + 1], tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
  local heads_key, column = KEYS[k + 1], k + 1
  a, k = a + 4, k + 1 + candidates
  local priority, name, hint, most, path = {}, {}, {}, {}, {}
  local named = {}            -- how many candidates need each stance
  for i = 1, candidates do
    priority[i], name[i], hint[i], most[i] = ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
    local n = tonumber(ARGV[a + 5])
    if n > 0 then
      local p = {}
      for j = 1, n do
        local at = tonumber(ARGV[a + 5 + j])
        p[j] = at
        named[at] = (named[at] or 0) + 1
      end
      path[i] = p
    end
    a = a + 5 + n
  end

  -- By candidate:
  local page, place = {}, {}  -- chunks and scores read of it, and which of them is its head
  local more = {}             -- whether there may be chunks behind the page
  local head = {}             -- triggers of its first chunk, false = empty
  local score, age = {}, {}   -- that one's score as a string, and its age
  local turn = {}             -- by what it takes its turn: its age, or what was said to be
  local step_of = {}          -- by how much the ranks of its triggers differ, if they have any
  local cost = {}             -- how many starts of a rate each of them uses
  local used = {}             -- chunks taken; they are removed at the end
  local rest = {}             -- what is left of the last of them
  local gone = {}             -- triggers taken
  local passed = {}           -- not looked at, since its path has no room, and one before was left for that
  local taken, seen = {}, 0

  local function step(i, at)
    local chunk = page[i][at] or false
    place[i], head[i], score[i], step_of[i], cost[i] = at, chunk, page[i][at + 1], nil, 1
    local tail = chunk and #chunk % TRIGGER or 0
    if tail >= RANK then
      age[i], step_of[i] = struct.unpack('>I8I8', chunk, #chunk - tail + 1)
    else
      age[i] = score[i] and tonumber(score[i])
    end
    if tail % RANK == COST then
      cost[i] = struct.unpack('>I4', chunk, #chunk - COST + 1)
    end
    turn[i] = most[i] > 0 and hint[i] or age[i]
  end

  -- Each call out of a script costs microseconds, so some chunks are read at once.
  local function look(i, n)
    page[i] = redis.call('ZRANGE', KEYS[column + i], used[i], used[i] + n - 1, 'WITHSCORES')
    more[i] = #page[i] == 2 * n
    step(i, 1)
  end

  -- Goes on to the next chunk when the head is taken; more than that one is of use if n > 1.
  local function advance(i, n)
    if more[i] and not page[i][place[i] + 2] then
      look(i, n)
    else
      step(i, place[i] + 2)
    end
  end

  -- How many triggers of its head come before the next chunk of a candidate.
  local function in_order(i)
    if (step_of[i] or 0) == 0 then
      return math.huge
    end
    if not page[i][place[i] + 2] then
      if not more[i] then
        return math.huge
      end
      look(i, 4)
      if not page[i][3] then
        return math.huge
      end
    end
    return math.max(IN_ORDER, math.floor((tonumber(page[i][place[i] + 3]) - tonumber(score[i])) / step_of[i]) + 1)
  end

  -- How many chunks to read at first: as many as may be needed, and not much more.
  local function first(i)
    local n, p = left, path[i]
    if most[i] > 0 then
      n = math.min(n, most[i])
    end
    if p then
      for j = 1, #p do
        n = math.min(n, stand[p[j]].room)
      end
    end
    return n <= 64 and 1 or (candidates == 1 and 4 or 2)
  end

  -- The first stance of a candidate's path that has no room.
  local function full(i)
    local p = path[i]
    if p then
      for j = 1, #p do
        if stand[p[j]].room == 0 then
          return p[j]
        end
      end
    end
  end

  -- Whether something was left already because this stance has no room.
  local function left_for(by)
    if by and named[by] > 1 then
      for i = 1, seen - 1 do
        if head[i] and full(i) == by then
          return true
        end
      end
    end
  end

  -- Removes what was taken of a candidate.
  local function remove(i)
    redis.call('ZREMRANGEBYRANK', KEYS[column + i], 0, used[i] - 1)
    if rest[i] then
      redis.call('ZADD', KEYS[column + i], score[i], rest[i])    -- of all, its age stays the least
    end
  end

  local function take(i)
    local chunk, p = head[i], path[i]
    local all = math.floor(#chunk / TRIGGER)
    local order = in_order(i)
    local n, over = math.min(left, all, order), 0
    if most[i] > 0 then
      n = math.min(n, most[i] - gone[i])
    end
    if p then
      for j = 1, #p do
        local s = stand[p[j]]
        local fits = s.room
        if s.every and not s.shadow then
          fits = fits_rate(s, cost[i])
          if fits == 0 then    -- its turn: nothing comes before it
            s.room, s.left = 0, 0
            lack(s, cost[i])
            return
          end
        end
        n = math.min(n, fits)
      end
      for j = 1, #p do
        local s = stand[p[j]]
        s.met = true
        if s.every then
          start_rate(s, n, cost[i])
        else
          s.granted, s.room = s.granted + n, s.room - n
        end
      end
      if all - n <= ahead and full(i) then
        over = all - n
      end
    end
    left, ahead = left - n, ahead - over
    gone[i] = gone[i] + n + over
    taken[#taken + 1] = i
    taken[#taken + 1] = score[i]
    used[i] = used[i] + 1
    if n + over < all then
      -- The want has all, or the path has no more room, or the next chunk comes first.
      taken[#taken + 1] = string.sub(chunk, 1, n * TRIGGER) .. string.sub(chunk, all * TRIGGER + 1)
      rest[i] = string.sub(chunk, n * TRIGGER + 1)
      if step_of[i] then -- others may come before the rest
        score[i] = string.format('%.0f', tonumber(score[i]) + n * step_of[i])
        remove(i)
        used[i], rest[i] = 0, nil
        look(i, (left > 0 and not full(i)) and 4 or 1)
      end
    else
      taken[#taken + 1] = chunk
      advance(i, over > 0 and 1 or 8)
    end
    taken[#taken + 1] = over
  end

  local from = 1
  while from <= candidates and left > 0 do
    local to = from
    while to < candidates and priority[to + 1] == priority[from] do
      to = to + 1
    end
    local live = {}    -- those seen of which more may be taken
    while left > 0 do
      local best, alive = nil, {}
      for j = 1, #live do
        local i = live[j]
        if head[i] and not (most[i] > 0 and gone[i] >= most[i]) and not full(i) then
          alive[#alive + 1] = i
          if not best or turn[i] < turn[best] then
            best = i
          end
        end
      end
      live = alive
      local next = seen + 1
      if seen < to and (not best or hint[next] < turn[best] or (hint[next] == turn[best] and (most[next] == 0 or most[best] == 0))) then
        seen = next
        gone[seen], used[seen] = 0, 0
        live[#live + 1] = seen
        if left_for(full(seen)) then
          passed[seen], head[seen], age[seen] = true, false, hint[seen]
        else
          look(seen, first(seen))
        end
      elseif best then
        take(best)
      else
        break
      end
    end
    from = to + 1
  end

  local heads, blocked, noted = {}, {}, {}
  local gained, lost = {}, {}    -- changes of the heads key
  for i = 1, seen do
    if used[i] > 0 then
      remove(i)
    end
    if head[i] or passed[i] then
      local at = string.format('%.0f', age[i])
      heads[#heads + 1] = at
      if age[i] ~= hint[i] and (most[i] == 0 or gone[i] > 0) then
        gained[#gained + 1] = at
        gained[#gained + 1] = name[i]
      end
      if path[i] then
        for j = 1, #path[i] do
          stand[path[i][j]].met = true
        end
        local by = full(i)
        if by and not noted[by] then
          noted[by] = true
          local s = stand[by]
          s.short = s.short + math.max(left, 1)
          if s.every then
            lack(s, head[i] and cost[i] or 1)
          end
          blocked[#blocked + 1] = by
          blocked[#blocked + 1] = s.every and 4 or s.restoring and 3 or (s.used + s.granted >= s.max and 1 or 2)
        end
      end
    else
      heads[#heads + 1] = ''
      lost[#lost + 1] = name[i]
    end
    heads[#heads + 1] = gone[i]
    heads[#heads + 1] = head[i] and step_of[i] and score[i] or '0'
  end
  if #gained > 0 then
    redis.call('ZADD', heads_key, unpack(gained))
  end
  if #lost > 0 then
    redis.call('ZREM', heads_key, unpack(lost))
    if redis.call('EXISTS', heads_key) == 0 then
      redis.call('SREM', KEYS[2], list)
    end
  end
  return {taken, heads, blocked}
end
