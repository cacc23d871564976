// Tests which fleet commands are valid, their defaults, and the errors for invalid commands.
import { describe, expect, it } from 'vitest'
import { commandRequestSchema } from './commands.ts'

describe('a fleet command', () => {
  it.each([
    [{ action: 'pause', queue: 'cpu' }],
    [{ action: 'resume', worker: 'pod-1:7:ab12cd34' }],
    [{ action: 'drain', queue: 'cpu', worker: 'pod-1:7:ab12cd34', mode: 'soft_timeout', timeout: '30s' }],
    [{ action: 'stop', worker: 'p', queue: 'cpu', slot: 3, how: 'hard', by: 'ann', id: 'once-1' }],
    [{ action: 'resize', queue: 'cpu', concurrency: 20 }],
    [{ action: 'log_level', level: 'debug', for: '10m' }],
    [{ action: 'log_level', level: 'configured', worker: 'pod-1:7:ab12cd34' }],
    [{ action: 'limit', queue: 'cpu', concurrency: 'none', rate: { max: 10, per: '1s' } }],
    [{ action: 'limit', queue: 'cpu', concurrencyPerKey: 3, ratePerKey: { max: 10, per: '1s', burst: 3 } }],
    [{ action: 'limit', queue: 'cpu', concurrencyKey: 'acme', concurrency: 0, rate: { max: 10, per: '1s', burst: 3 } }],
    [{ action: 'limit', queue: 'cpu', concurrencyKey: 'acme', concurrency: 'none', rate: 'none' }],
    [{ action: 'limit', queue: 'cpu', permits: { db: 5, gpu: 0, disk: 'none' } }],
    [{ action: 'limit', queue: 'cpu', task: 'cpu.hash', concurrency: 0 }],
    [{ action: 'limit', queue: 'cpu', maxTasks: 5_000 }],
    [{ action: 'limit', queue: 'cpu', maxTasks: 'none' }],
    [{ action: 'limit', queue: 'cpu', maxBytes: '64MiB', maxAge: '10m' }],
    [{ action: 'limit', queue: 'cpu', maxBytes: 5_000 }],
    [{ action: 'limit', queue: 'cpu', maxBytes: 'none', maxAge: 'none' }],
    [{ action: 'limit', apiKeyName: 'shop', enqueueRate: { max: 100, per: '1s' } }],
    [{ action: 'limit', apiKeyName: '0813ba6d', enqueueRate: 'none' }],
    [{ action: 'limit', queue: 'cpu', apiKeyName: 'shop', enqueueRate: { max: 100, per: '1s' } }],
    [{ action: 'limit', queue: 'cpu', apiKeyName: 'shop', maxUnfinishedTasks: 50 }],
    [{ action: 'breaker', queue: 'cpu', service: 'smtp', to: 'auto' }],
  ])('%j is valid', (body) => {
    expect(commandRequestSchema.safeParse(body)).toMatchObject({ success: true })
  })

  it('drains with soft_timeout and stops a slot after its task by default', () => {
    expect(commandRequestSchema.parse({ action: 'drain', queue: 'cpu' })).toMatchObject({ mode: 'soft_timeout' })
    expect(commandRequestSchema.parse({ action: 'stop', queue: 'cpu', worker: 'p', slot: 1 })).toMatchObject({
      how: 'wait',
    })
  })

  it.each([
    [{ action: 'pause' }, 'queue', 'specify queue, worker, or both to target one pool'],
    [{ action: 'drain', queue: 'cpu', mode: 'hard', timeout: '1s' }, 'timeout', 'timeout requires mode soft_timeout'],
    [{ action: 'drain', queue: 'cpu', timeout: 'soon' }, 'timeout', 'soon'],
    [{ action: 'breaker', queue: 'cpu', service: 'SMTP', to: 'open' }, 'service', 'expected a lower-case letter'],
    [{ action: 'drain', queue: 'Cpu' }, 'queue', 'expected the name of a queue'],
    [
      { action: 'limit', queue: 'cpu' },
      'concurrency',
      'specify at least one of concurrency, rate, concurrencyPerKey, ratePerKey, permits, maxTasks, maxBytes, maxAge',
    ],
    [{ action: 'limit', concurrencyKey: 'acme', concurrency: 3 }, 'queue', 'specify queue as well'],
    [{ action: 'limit', queue: 'cpu', concurrencyKey: 'a\n', rate: 'none' }, 'concurrencyKey', 'without line breaks'],
    [{ action: 'limit', queue: 'cpu', concurrency: 0 }, 'concurrency', 'pause it'],
    [{ action: 'limit', queue: 'cpu', rate: { max: 1, per: '1s', burst: 3 } }, 'rate', 'has no burst'],
    [
      { action: 'limit', queue: 'cpu', concurrencyKey: 'acme', maxTasks: 3 },
      'maxTasks',
      'maxTasks is not a limit of a concurrency key; expected concurrency, rate',
    ],
    [
      { action: 'limit', queue: 'cpu', concurrencyKey: 'acme', apiKeyName: 'shop', rate: 'none' },
      'concurrencyKey',
      'specify only one of apiKeyName, concurrencyKey, task',
    ],
    [{ action: 'limit', task: 'cpu.hash', concurrency: 3 }, 'queue', 'a task definition is limited in its queue'],
    [
      { action: 'limit', queue: 'cpu', task: 'cpu.hash', permits: { db: 3 } },
      'permits',
      'permits is not a limit of a task definition; expected concurrency',
    ],
    [{ action: 'limit', queue: 'cpu', permits: {} }, 'permits', 'at least one'],
    [{ action: 'limit', queue: 'cpu', permits: { db: -1 } }, 'permits.db', '>=0'],
    [{ action: 'limit', maxTasks: 5 }, 'queue', 'specify queue, apiKeyName, or both'],
    [{ action: 'limit', queue: 'cpu', apiKeyName: 'shop', rate: 'none' }, 'rate', 'not a limit of an API key'],
    [{ action: 'limit', queue: 'cpu', enqueueRate: 'none' }, 'enqueueRate', 'enqueueRate is not a limit of a queue'],
    [{ action: 'limit', apiKeyName: 'shop', rate: 'none' }, 'rate', 'rate is not a limit of an API key'],
    [{ action: 'limit', apiKeyName: 'shop' }, 'enqueueRate', 'specify at least one of enqueueRate, maxUnfinishedTasks'],
    [{ action: 'limit', apiKeyName: 'shop', maxUnfinishedTasks: 5 }, 'maxUnfinishedTasks', 'specify queue as well'],
    [
      { action: 'limit', apiKeyName: 'a-key-of-20-letters-', enqueueRate: 'none' },
      'apiKeyName',
      'shorter than the key',
    ],
    [{ action: 'limit', queue: 'cpu', maxTasks: 0 }, 'maxTasks', ''],
    [
      { action: 'limit', queue: 'cpu', maxBytes: '64MB' },
      'maxBytes',
      'the amount is "64MB"; expected a whole number with MiB or GiB',
    ],
    [{ action: 'limit', queue: 'cpu', maxBytes: 0 }, 'maxBytes', '>=1'],
    [{ action: 'limit', queue: 'cpu', maxAge: '10' }, 'maxAge', "such as '10s'"],
    [{ action: 'resize', queue: 'cpu', concurrency: 0 }, 'concurrency', '1'],
    [{ action: 'log_level', level: 'trace' }, 'level', 'debug'],
    [{ action: 'stop', worker: 'p', queue: 'cpu', slot: 0 }, 'slot', '1'],
    [{ action: 'pause', queue: 'cpu', id: 'a b' }, 'id', 'letters'],
  ])('%j is rejected with an error at %s', (body, path, message) => {
    const issues = commandRequestSchema.safeParse(body).error?.issues ?? []
    expect(issues).toHaveLength(1)
    expect(issues[0]?.path.join('.')).toBe(path)
    expect(issues[0]?.message).toContain(message)
  })

  it('with an unknown action or field is rejected', () => {
    expect(commandRequestSchema.safeParse({ action: 'explode', queue: 'cpu' }).success).toBe(false)
    expect(commandRequestSchema.safeParse({ action: 'pause', queue: 'cpu', slot: 1 }).success).toBe(false)
  })

  it('with an unknown action is rejected with the known ones', () => {
    const issue = commandRequestSchema.safeParse({ action: 'explode', queue: 'cpu' }).error?.issues[0]
    expect(issue).toMatchObject({
      path: ['action'],
      message: 'expected pause, resume, drain, stop, resize, limit, breaker or log_level',
    })
  })
})
