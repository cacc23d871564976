// Tests a worker's settings: pools, and the rules that involve several settings.
import { describe, expect, it } from 'vitest'
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
