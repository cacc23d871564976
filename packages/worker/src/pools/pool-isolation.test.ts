// Tests which tasks the settings of a pool isolate, and that these run in another thread.
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { createRegistry } from '@bullpen/engine/internal'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { assertIsolable, isolateByPool } from './pool-isolation.ts'

const schemas = { input: z.object({}), output: z.object({}) }
const open = defineTask({ name: 'cpu.open', queue: 'cpu', ...schemas })
const fixed = defineTask({ name: 'cpu.fixed', queue: 'cpu', isolation: 'inline', ...schemas })
const apart = defineTask({ name: 'cpu.apart', queue: 'cpu', isolation: 'process', ...schemas })
const short = defineTask({ name: 'cpu.short', queue: 'cpu', kind: 'short', ...schemas })
const other = defineTask({ name: 'io.open', queue: 'io', ...schemas })
const catalogue = defineCatalogue(open, fixed, apart, short, other)
const handlers = {
  'cpu.open': defineHandler(open, import.meta.url, () => ({})),
  'cpu.fixed': defineHandler(fixed, import.meta.url, () => ({})),
  'cpu.apart': defineHandler(apart, import.meta.url, () => ({})),
  'cpu.short': defineHandler(short, import.meta.url, () => ({})),
  'io.open': defineHandler(other, import.meta.url, () => ({})),
}
const isolationOf = (queue: string) => (queue === 'cpu' ? ('thread' as const) : undefined)

describe('the isolation of a pool', () => {
  it('applies to the long tasks of its queue whose definitions set none', () => {
    const { catalogue: effective, isolated } = isolateByPool(catalogue, handlers, isolationOf)
    expect(Object.fromEntries(effective.definitions.map(({ name, isolation }) => [name, isolation]))).toEqual({
      'cpu.open': 'thread',
      'cpu.fixed': 'inline',
      'cpu.apart': 'process',
      'cpu.short': 'inline',
      'io.open': 'inline',
    })
    expect([...isolated.keys()]).toEqual(['cpu.open'])
  })

  it('is that with which the worker runs the handlers', () => {
    const started: unknown[] = []
    const isolator = {
      isolations: ['thread', 'process'] as const,
      run: ({ task, isolation }: { readonly task: string; readonly isolation: string }) => {
        started.push([task, isolation])
        throw new Error('not started')
      },
      close: async () => {},
    }
    const effective = isolateByPool(catalogue, handlers, isolationOf)
    const registry = createRegistry(effective.catalogue, effective.handlers, { isolator })
    const attempt = { decoded: {}, meta: {}, enqueuedAt: new Date(0), startedAt: new Date(0) }
    for (const task of ['cpu.open', 'cpu.fixed'])
      void Promise.resolve(registry.get(task)?.handle(attempt as never)).catch(() => {})
    expect(started).toEqual([['cpu.open', 'thread']])
  })

  it('is refused if a thread or child process cannot run a handler', async () => {
    const { isolated } = isolateByPool(catalogue, handlers, isolationOf)
    await expect(assertIsolable(isolated, async () => false)).rejects.toThrow(
      /poolSettings \(BULLPEN_WORKER_POOL_SETTINGS\) isolates cpu\.open, but.*isolation: 'inline'/,
    )
    await assertIsolable(isolated, async () => true)
  })

  it('changes nothing if no pool has one', () => {
    expect(isolateByPool(catalogue, handlers, () => undefined)).toMatchObject({ catalogue, handlers })
  })
})
