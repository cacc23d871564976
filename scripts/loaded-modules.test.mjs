// A process does not load what it never uses, because its start would take longer and the process more memory.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '..')
const preload = join(import.meta.dirname, 'testing/report-loaded.mjs')

/** The code of `fetch` in Node. It takes longer to load than the rest of Node. */
const FETCH = 'internal/deps/undici'
const BULLMQ = ['/packages/bullmq/', '/node_modules/bullmq/', '/node_modules/ioredis/']

/** Each program with what it loads and what it must not load. */
const PROGRAMS = [
  ['apps/worker/src/main.ts', ['/packages/sandbox/'], [FETCH, '/packages/api/', '/node_modules/fastify/']],
  ['apps/api/src/main.ts', ['/node_modules/fastify/'], [FETCH, '/packages/worker/', '/node_modules/@bull-board/']],
  ['packages/cli/src/main.ts', ['/packages/client/'], [...BULLMQ, '/packages/engine/']],
  // What runs in each isolate.
  [
    'packages/sandbox/src/inside/serve.ts',
    ['/packages/engine/src/isolate.ts'],
    [FETCH, ...BULLMQ, '/engine/src/internal.ts', '/contract/src/internal.ts', '/contract/src/http/groups.ts'],
  ],
]

it.each(PROGRAMS)('%s loads %j, but not %j', (file, loads, leavesOut) => {
  const { output, status } = spawnSync(process.execPath, ['--import', preload, join(root, file), '--help'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
  })
  expect(status).toBe(0)
  const loaded = JSON.parse(output[3])
  expect(loads.filter((part) => !loaded.some((name) => name.includes(part)))).toEqual([])
  expect(loaded.filter((name) => leavesOut.some((part) => name.includes(part)))).toEqual([])
})
