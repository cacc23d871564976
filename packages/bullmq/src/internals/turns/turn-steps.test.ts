// What the lanes rely on in the texts of BullMQ's scripts: the forms of the commands by which a job starts or stops
// waiting.
import { expect, it } from 'vitest'
import { bullmqScripts, COMPOSED } from '../composition/composed-scripts.ts'
import { withLanes, withLaneTimes } from './turn-steps.ts'

const scripts = bullmqScripts().filter(({ name }) => COMPOSED.has(name))
const unique = (values: readonly string[]): string[] => [...new Set(values)].toSorted()
const found = (pattern: RegExp): string[] =>
  unique(scripts.flatMap(({ content }) => [...content.matchAll(pattern)].map(([call]) => call)))

const PUSH = /rcall\((?:pushCmd|["'][LR]PUSH["']), (?:[^()]|\([^()]*\))*\)/g

it('BullMQ adds a job to a list by commands in these forms', () => {
  expect(found(PUSH)).toEqual(['rcall(pushCmd, targetKey, jobId)'])
})

it('BullMQ adds a job to the prioritized set by a command in this form', () => {
  expect(found(/rcall\("ZADD", (?:prioritized|priority)Key[^)]*\)/g)).toEqual([
    'rcall("ZADD", prioritizedKey, score, jobId)',
  ])
})

it('the scripts that add a job do so in functions that then add the marker, and do nothing else', () => {
  const adds = scripts.filter(({ name }) => /^(add|update)JobScheduler$/.test(name))
  const forms = /rcall\((?:pushCmd, targetKey|"ZADD", prioritizedKey, score), jobId\)\n.*\n.*/g
  expect(unique(adds.flatMap(({ content }) => content.match(forms) ?? []))).toEqual([
    'rcall("ZADD", prioritizedKey, score, jobId)\n  addBaseMarkerIfNeeded(markerKey, isPausedOrMaxed)\nend',
    'rcall(pushCmd, targetKey, jobId)\n  addBaseMarkerIfNeeded(markerKey, isPausedOrMaxed)\nend',
  ])
})

it('each of these commands is preceded by a look at the lane', () => {
  for (const { name, content } of scripts) {
    const changed = withLanes(content)
    const lanes = changed.match(/include\('lanes'\)\.enter_lane\(/g) ?? []
    const commands = content.match(/rcall\(pushCmd|rcall\("ZADD", prioritizedKey/g) ?? []
    expect({ name, lanes: lanes.length }).toEqual({ name, lanes: commands.length })
  }
})

it('BullMQ reads the next delayed job in one place of each script', () => {
  for (const { name, content } of scripts) {
    const reads = content.match(/rcall\("ZRANGE", delayedKey, [^)]*\)/g) ?? []
    const changed = withLaneTimes(content).match(/'lane-times'/g) ?? []
    expect({ name, changed: changed.length }).toEqual({ name, changed: reads.length })
    if (content.includes('getNextDelayedTimestamp(')) expect(reads).toHaveLength(1)
  }
})
