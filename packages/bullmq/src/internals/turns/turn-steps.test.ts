// What the lanes rely on in the texts of BullMQ's scripts: the forms of the commands by which a job starts or stops waiting.
import { expect, it } from 'vitest'
import { bullmqScripts, COMPOSED } from '../composition/composed-scripts.ts'
import { withReturns } from '../quarantine-steps.ts'
import { withLaneOfAdded, withLanes } from './turn-steps.ts'

const scripts = bullmqScripts().filter(({ name }) => COMPOSED.has(name))
const unique = (values: readonly string[]): string[] => [...new Set(values)].toSorted()
const found = (pattern: RegExp, text: (content: string) => string = (content) => content): string[] =>
  unique(scripts.flatMap(({ content }) => [...text(content).matchAll(pattern)].map(([call]) => call)))

/** Pushes that add no job to the waiting list. The texts of promotions are changed in ../quarantine-steps.ts. */
const OTHER_PUSHES = [
  'rcall("LPUSH", activeKey, prioritizedJob[1])',
  'rcall("LPUSH", dataPointsList, delta)',
  'rcall("LPUSH", dataPointsList, unpack(points, from, to))',
  // The lines of a job's log.
  'rcall("RPUSH", KEYS[2], ARGV[2])',
  // The list of the jobs of a paused queue, which BullMQ does not use any more.
  'rcall("RPUSH", KEYS[2], unpack(jobs))',
]

const PUSH = /rcall\((?:pushCmd|["'][LR]PUSH["']), (?:[^()]|\([^()]*\))*\)/g

it('BullMQ adds a job to a list by commands in these forms', () => {
  expect(found(PUSH)).toEqual(
    [
      ...OTHER_PUSHES,
      'rcall("LPUSH", KEYS[4], unpack(jobs, from, to))',
      'rcall("LPUSH", targetKey, jobId)',
      'rcall(pushCmd, targetKey, jobId)',
    ].toSorted(),
  )
  const promotions = found(/local priority, returns, lane = [\s\S]*?if lane then/g, withReturns)
  expect(promotions).toHaveLength(1)
})

it('BullMQ adds a job to the prioritized set by a command in this form', () => {
  expect(found(/rcall\("ZADD", (?:prioritized|priority)Key[^)]*\)/g)).toEqual([
    'rcall("ZADD", prioritizedKey, score, jobId)',
  ])
})

it('BullMQ removes a single job from the waiting list, and counts the waiting jobs, in these forms', () => {
  expect(found(/rcall\("LREM", prefix \.\. "wait".*?\) == 1/g)).toEqual([
    'rcall("LREM", prefix .. "wait", 1, jobId) == 1',
  ])
  expect(found(/rcall\("LREM", waitKey.*?\) > 0/g)).toEqual(['rcall("LREM", waitKey, -1, jobId) > 0'])
  expect(found(/return waitCount \+ \w+/g)).toEqual(['return waitCount + prioritizedCount'])
})

it('BullMQ cleans waiting jobs with these functions, and reports the number of jobs last', () => {
  const { content = '' } = scripts.find(({ name }) => name === 'cleanJobsInSet') ?? {}
  expect(
    [...content.matchAll(/^local function (clean\w+\([^)]*\))/gm)].map(([, text = '']) => text.replaceAll(/\s+/g, ' ')),
  ).toEqual([
    'cleanList(listKey, jobKeyPrefix, rangeStart, rangeEnd, timestamp, isWaiting, jobSchedulersKey)',
    'cleanSet( setKey, jobKeyPrefix, rangeEnd, timestamp, limit, attributes, isFinished, jobSchedulersKey)',
  ])
  expect(content).toMatch(
    /rcall\("XADD", KEYS\[2\], "\*", "event", "cleaned", "count", result\[2\]\)\nreturn result\[1\]\s*$/,
  )
  expect(withLanes(content)).toContain("call('ZRANGE', base .. 'lanes', 0, -1)")
})

it('each of these commands is preceded by a look at the lane', () => {
  for (const { name, content } of scripts) {
    const changed = (name.startsWith('add') && !name.includes('Log') ? withLaneOfAdded : withLanes)(
      withReturns(content),
    )
    const lanes = changed.match(/call\(to_head and 'RPUSH' or 'LPUSH'/g) ?? []
    const commands =
      content.match(/rcall\(pushCmd|rcall\("ZADD", prioritizedKey|rcall\("LPUSH", (?:targetKey|KEYS\[4\])/g) ?? []
    expect({ name, lanes: lanes.length }).toEqual({ name, lanes: commands.length })
  }
})
