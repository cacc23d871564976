// Tests what a worker derives from its catalogue and settings.
import { availableParallelism } from 'node:os'
import { checkSettings, WORKER_RULES, WORKER_SETTINGS, type WorkerConfig } from '@bullpen/config'
import { defineCatalogue, defineTask } from '@bullpen/contract'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { graceWarnings, poolSizes } from './resolve-config.ts'

const schemas = { input: z.object({}), output: z.object({}) }
const catalogue = defineCatalogue(
  defineTask({ name: 'plan.default', queue: 'plan', ...schemas }),
  defineTask({ name: 'plan.shorter', queue: 'plan', grace: '5s', ...schemas }),
  defineTask({ name: 'plan.longer', queue: 'plan', grace: '30s', ...schemas }),
  defineTask({ name: 'plan.endless', queue: 'plan', grace: 'none', ...schemas }),
  defineTask({ name: 'plan.elsewhere', queue: 'elsewhere', grace: '30s', ...schemas }),
)

describe('the size of a pool', () => {
  const sizesOf = (config: WorkerConfig) =>
    Object.fromEntries(poolSizes(catalogue, checkSettings(WORKER_SETTINGS, WORKER_RULES, config)))

  it('is twice the number of CPU cores for every queue of the catalogue, unless pools are configured', () => {
    const size = availableParallelism() * 2
    expect(sizesOf({})).toEqual({ plan: size, elsewhere: size })
  })

  it('is as configured, and 0 stands for twice the number of CPU cores', () => {
    expect(sizesOf({ pools: { plan: 3 } })).toEqual({ plan: 3 })
    expect(sizesOf({ pools: { plan: 0 } })).toEqual({ plan: availableParallelism() * 2 })
  })

  it('may not be configured for a queue that the catalogue does not have', () => {
    expect(() => sizesOf({ pools: { plam: 3 } })).toThrow(
      "invalid configuration: pools (BULLPEN_WORKER_POOLS) names queue 'plam', which no task in the catalogue uses; did you mean 'plan'?",
    )
  })
})

describe('a warning at the start', () => {
  it('names each task whose grace period a drain would cut, and no other', () => {
    expect(graceWarnings(catalogue, new Map([['plan', 1]]), () => 5_000)).toEqual([
      "grace period of plan.longer is 30s, but a drain shortens it to the worker's grace period of 5s (BULLPEN_WORKER_GRACE)",
      "grace period of plan.endless is unlimited, but a drain shortens it to the worker's grace period of 5s (BULLPEN_WORKER_GRACE)",
    ])
  })
})
