-- 1,000 different retrievals for wrk, sent in turn; the same ones on every run.
--
--   wrk -t1 -c16 -d5s --latency -s retrievals.lua http://127.0.0.1:8765/memory_retrieval
--
-- With a number behind the URL, wrk exits after so many responses instead (give it a long -d then).

local REQUESTS = 1000
local WORDS = {
  "用户", "灵绯", "之前", "约定", "暗号", "喜欢", "称呼", "自己", "格式", "建议", "睡前", "放松", "结论", "理由",
  "咖啡", "早餐", "周末", "旅行", "家人", "同事", "项目", "进度", "预算", "电影", "音乐", "跑步", "过敏", "工作",
  "城市", "生日", "礼物", "猫", "雨天", "月亮", "醒了", "计划", "语气", "简短", "代码", "学习", "目标", "习惯",
  "最近", "提到", "记得", "怎么", "什么", "为什么", "的", "和", "在", "是",
}
local TYPES = { "preference", "profile", "history", "project", "constraint", "relationship", "style", "other" }
local HINTS = { "", "", "最近", "上周", "昨天晚上", "去年冬天", "三个月前" }

local function phrase(least, most)
  local words = {}
  for n = 1, math.random(least, most) do
    words[n] = WORDS[math.random(#WORDS)]
  end
  return table.concat(words)
end

local function types() -- none, which means all, up to three
  local first, names = math.random(#TYPES), {}
  for n = 1, math.random(0, 3) do
    names[n] = '"' .. TYPES[(first + n) % #TYPES + 1] .. '"'
  end
  return "[" .. table.concat(names, ",") .. "]"
end

local function retrieval(number)
  local form = '{"live_id":"7%017d","query":"%s","reason":"%s","memory_types":%s,"time_hint":"%s","max_results":%d}'
  return string.format(
    form, math.random(1000000000), phrase(3, 8) .. number, phrase(4, 8), types(), HINTS[math.random(#HINTS)], 5
  )
end

local requests, turn = {}, 0

function init(args)
  math.randomseed(20260101)
  wrk.headers["Content-Type"] = "application/json"
  wrk.headers["Accept"] = "application/json"
  wrk.headers["Authorization"] = "Bearer memmock"
  for number = 1, REQUESTS do
    requests[number] = wrk.format("POST", nil, nil, retrieval(number))
  end
  local left = tonumber(args[1])
  if left then
    function response()
      left = left - 1
      if left == 0 then
        os.exit(0)
      end
    end
  end
end

function request()
  turn = turn % REQUESTS + 1
  return requests[turn]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    'JSON {"requests":%d,"duration_us":%d,"bytes":%d,"p50_us":%d,"p99_us":%d,"max_us":%d,"errors":%d}\n',
    summary.requests, summary.duration, summary.bytes,
    latency:percentile(50), latency:percentile(99), latency.max,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout
  ))
end
