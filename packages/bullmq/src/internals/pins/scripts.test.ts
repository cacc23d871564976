// BullMQ's scripts: where their texts are, what those that run write, and what they answer.
import { ErrorCode } from 'bullmq'
import { describe, expect, it } from 'vitest'
import { bullmqScripts, FLAGGED, REPLACED } from '../../store/bullmq-scripts.ts'

const runAsTheyAre = bullmqScripts().filter(
  ({ name }) => !FLAGGED.has(name) && !REPLACED.includes(name) && !name.startsWith('relay'),
)

/** The commands that a script names. */
const commandsIn = (code: string): string[] =>
  [...code.matchAll(/\b(?:rcall|redis\.p?call)\(\s*(["']?)(\w+)\1/g)].map(([, , command]) => command ?? '')

const READS = /^rcall\(["'](?:EXISTS|GET|HGET)["']/

describe("BullMQ's scripts", () => {
  it('are exported with their names, numbers of keys and texts', () => {
    for (const script of bullmqScripts()) {
      expect(script).toEqual({ name: expect.any(String), keys: expect.any(Number), content: expect.any(String) })
    }
    expect(bullmqScripts().map(({ name }) => name)).toEqual(expect.arrayContaining([...REPLACED, ...FLAGGED.keys()]))
  })

  it.each(runAsTheyAre)('$name, which runs as it is, moves and deletes no job', ({ name, content }) => {
    const writes = commandsIn(content).filter((command) =>
      /^(ZADD|ZREM|LPUSH|RPUSH|LREM|DEL|UNLINK|HMSET|HSET)/.test(command),
    )
    // The counter of the rate limit is no job.
    expect(writes).toEqual(name === 'getRateLimitTtl' ? ['DEL'] : [])
  })

  it('that run with a first line of ours write a log, the progress or a deduplication key, and no places, names or data of jobs', () => {
    const writes = bullmqScripts()
      .filter(({ name }) => FLAGGED.has(name))
      .map(({ name, content }) => [
        name,
        (content.match(/\brcall\([^)]*\)/g) ?? []).filter((call) => !READS.test(call)),
      ])
    expect(Object.fromEntries(writes)).toEqual({
      addLog: ['rcall("RPUSH", KEYS[2], ARGV[2])', 'rcall("LTRIM", KEYS[2], -keepLogs, -1)'],
      removeDeduplicationKey: ['rcall("DEL", deduplicationKey)'],
      updateProgress: [
        'rcall("HSET", metaKey, "opts.maxLenEvents", maxEvents)',
        'rcall("HSET", KEYS[1], "progress", ARGV[2])',
        expect.stringMatching(/^rcall\("XADD", KEYS\[2\], /),
      ],
    })
  })

  it('that run with a first line of ours call Redis only by the name rcall, and are otherwise unchanged', () => {
    for (const { name, content } of bullmqScripts().filter((each) => FLAGGED.has(each.name))) {
      expect(content.match(/redis\.p?call/g)).toEqual(['redis.call'])
      expect(content).toContain('local rcall = redis.call\n')
      expect(FLAGGED.get(name)?.lua).toMatch(/^#!lua( flags=allow-oom)?\n/)
      expect(FLAGGED.get(name)?.lua.split('\n').slice(1).join('\n')).toBe(content)
    }
  })

  it('have these codes for what they refuse', () => {
    expect(ErrorCode).toMatchObject({
      JobNotExist: -1,
      JobLockNotExist: -2,
      JobNotInState: -3,
      JobPendingChildren: -4,
      JobLockMismatch: -6,
      JobHasFailedChildren: -9,
      SchedulerJobIdCollision: -10,
      SchedulerJobSlotsBusy: -11,
    })
  })
})
