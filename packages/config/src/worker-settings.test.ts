// Tests a worker's settings: pools, and the rules that involve several settings.
import { describe, expect, it } from 'vitest'
import { settingsOfPool } from './pool-settings.ts'
import { checkSettings, readSettings } from './settings.ts'
import { WORKER_RULES, WORKER_SETTINGS, type WorkerConfig } from './worker-settings.ts'

const check = (config: WorkerConfig) => checkSettings(WORKER_SETTINGS, WORKER_RULES, config)
const poolsOf = (text: string) =>
  readSettings('WORKER', WORKER_SETTINGS, WORKER_RULES, {
    argv: [],
    env: { BULLPEN_WORKER_POOLS: text },
    readFile: () => '{}',
  }).pools

describe('the pools of a worker', () => {
  it('are read from text and from an object', () => {
    expect(poolsOf('cpu=4, files = 20')).toEqual({ cpu: 4, files: 20 })
    expect(check({ pools: { cpu: 4 } }).pools).toEqual({ cpu: 4 })
    expect(poolsOf('constructor=4')).toEqual({ constructor: 4 })
    expect(poolsOf('')).toBeUndefined()
  })

  it.each(['cpu', 'cpu=', 'cpu=many', 'cpu=-1', 'cpu=4,cpu=8', 'cpu=4,', '=4', 'Not A Queue=4'])(
    'may not be %j',
    (text) => {
      expect(() => poolsOf(text)).toThrow(
        `BULLPEN_WORKER_POOLS is ${JSON.stringify(text)}; expected each queue once with its concurrency`,
      )
    },
  )

  it('may not be an empty object', () => {
    expect(() => check({ pools: {} })).toThrow('config.pools (BULLPEN_WORKER_POOLS) is {}; expected each queue')
  })
})

describe('the settings of a worker', () => {
  it('that are not JSON are reported with the place of the error', () => {
    expect(() => check({ poolSettings: '{"mail": {"grace": 1s}}' })).toThrow(
      /, isolation; the text is not valid JSON: see line 1, column 21$/,
    )
  })

  it('must let a drain finish before the platform kills the process', () => {
    expect(() => check({ drainTimeout: '29s' })).toThrow(
      /drainTimeout \(BULLPEN_WORKER_DRAIN_TIMEOUT, 29s\).*do not fit in terminationGrace/,
    )
    expect(() => check({ drainTimeout: '29s', terminationGrace: '1m' })).not.toThrow()
  })

  it('must not contain contradictory task timeouts', () => {
    expect(() => check({ taskTimeout: '1h', totalTimeout: '1m' })).toThrow(/taskTimeout/)
  })
})

describe('the settings of a pool', () => {
  const text = '{"reports":{"taskTimeout":"1h","drainMode":"soft","maxStuckHandlers":"2"}}'

  it('are read from text and from an object, and take precedence over those of the worker', () => {
    const settings = readSettings('WORKER', WORKER_SETTINGS, WORKER_RULES, {
      argv: ['--task-timeout', '10m', '--grace', '1s'],
      env: { BULLPEN_WORKER_POOL_SETTINGS: text },
      readFile: () => '{}',
    })
    const ofReports = { taskTimeout: '1h', drainMode: 'soft', maxStuckHandlers: 2, grace: '1s' }
    expect(settingsOfPool(settings, 'reports')).toMatchObject(ofReports)
    const ofWorker = { taskTimeout: '10m', drainMode: 'soft_timeout', maxStuckHandlers: 10, grace: '1s' }
    expect(settingsOfPool(settings, 'mail')).toMatchObject(ofWorker)
    expect(settingsOfPool(settings, 'constructor')).toMatchObject(ofWorker)
    expect(settingsOfPool(check({ poolSettings: { mail: { isolation: 'thread' } } }), 'mail').isolation).toBe('thread')
  })

  it.each<[WorkerConfig['poolSettings'], string]>([
    [
      { mail: { drainMode: 'slow' as 'soft' } },
      `drainMode of 'mail' is "slow"; expected one of light, soft, soft_timeout, hard`,
    ],
    [
      { mail: { drainTimout: '5s' } as object },
      "drainTimout of 'mail' is not a setting of a pool; did you mean drainTimeout?",
    ],
    [{ 'No Queue': {} }, "'No Queue' is not the name of a queue"],
    [JSON.parse('{"__proto__":{"taskTimeout":"1h"}}'), "'__proto__' is not the name of a queue"],
    ['{"__proto__":{"taskTimeout":"1h"}}', "'__proto__' is not the name of a queue"],
    [JSON.parse('{"mail":{"__proto__":{}}}'), "__proto__ of 'mail' is not a setting of a pool"],
    [{ mail: null as never }, `'mail' has no settings; expected an object such as {"drainMode":"soft"}`],
    [{ mail: { grace: '1' as '1s' } }, `grace of 'mail' is "1"; expected a duration such as "1s"`],
    [{ mail: { taskTimeout: 5 as never } }, `taskTimeout of 'mail' is 5; expected a duration such as "5s", or "none"`],
    [{ mail: { maxStuckHandlers: -1 } }, "maxStuckHandlers of 'mail' is -1; expected a whole number from 0 to 10000"],
  ])('may not be %j', (poolSettings, fault) => {
    expect(() => check({ poolSettings })).toThrow(fault)
    expect(() => check({ poolSettings })).toThrow('expected a JSON object with the settings of pools by queue')
  })

  it('must let a drain finish before the platform kills the process, unless it has no deadline', () => {
    expect(() => check({ poolSettings: { mail: { drainTimeout: '1h' } } })).toThrow(
      /of 'mail': drainTimeout .*, 1h\).*do not fit in terminationGrace/,
    )
    expect(() => check({ poolSettings: { mail: { drainTimeout: '1h', drainMode: 'soft' } } })).not.toThrow()
    expect(() => check({ drainMode: 'hard', drainTimeout: '1h' })).not.toThrow()
    expect(() => check({ drainMode: 'hard', grace: '29s' })).toThrow(/grace .*, 29s\).*do not fit/)
  })

  it('must not contain contradictory task timeouts', () => {
    expect(() => check({ totalTimeout: '1h', poolSettings: { mail: { taskTimeout: '2h' } } })).toThrow(
      /'mail': taskTimeout/,
    )
  })
})
