// What a worker process is to be, worked out from its catalogue.
import { defineCatalogue, defineTask } from '@bullpen/contract'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { graceWarnings } from './resolve-config.ts'

const schemas = { input: z.object({}), output: z.object({}) }

it('tells of each grace that a drain would cut, and of no other', () => {
  const catalogue = defineCatalogue(
    defineTask({ name: 'plan.default', queue: 'plan', ...schemas }),
    defineTask({ name: 'plan.shorter', queue: 'plan', grace: '5s', ...schemas }),
    defineTask({ name: 'plan.longer', queue: 'plan', grace: '30s', ...schemas }),
    defineTask({ name: 'plan.endless', queue: 'plan', grace: 'none', ...schemas }),
    defineTask({ name: 'plan.elsewhere', queue: 'elsewhere', grace: '30s', ...schemas }),
  )
  expect(graceWarnings(catalogue, new Map([['plan', 1]]), 5_000)).toEqual([
    "the grace of plan.longer is 30s; at a drain it is 5s, the process's own (BULLPEN_WORKER_GRACE)",
    "the grace of plan.endless has no end; at a drain it is 5s, the process's own (BULLPEN_WORKER_GRACE)",
  ])
})
