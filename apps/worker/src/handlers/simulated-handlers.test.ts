// Every handler of the example that can be enqueued by itself is idempotent: it is interrupted at each of its calls and at each
// step, and runs again.
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { effects, type Simulation, simulate } from '@bullpen/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openFileAccess } from '../resources/file-access.ts'
import type { WorkerResources } from '../resources/index.ts'
import { openReceiptGateway } from '../resources/receipt-gateway.ts'
import { handlers } from './index.ts'
import { resourcesWith } from './resources.fixture.ts'

const receipt = { orderId: '7', to: 'ann@example.org', total: '19.90', currency: 'EUR' }

/** The keys of all requests that the endpoint has received. */
const keys: unknown[] = []
const endpoint = createServer((request, response) => {
  keys.push(request.headers['idempotency-key'])
  response.writeHead(202).end()
})
let directory: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'simulated-'))
  for (const name of ['a', 'b', 'c']) await writeFile(join(directory, name), name)
  endpoint.listen(0, '127.0.0.1')
  await once(endpoint, 'listening')
})

afterAll(async () => {
  endpoint.close()
  endpoint.closeAllConnections()
  await rm(directory, { recursive: true })
})

async function resources(): Promise<WorkerResources> {
  const { port } = endpoint.address() as AddressInfo
  const gateway = await openReceiptGateway({ endpoint: `http://127.0.0.1:${port}/receipts` })
  return resourcesWith({
    files: await openFileAccess({ roots: [directory] }),
    // The endpoint honours the Idempotency-Key header, as the gateway's documentation requires.
    receipts: effects(gateway, { deliver: { deduplicatedBy: (_receipt, key) => key } }),
  })
}

// The handlers read real files and sockets.
const real = { clock: 'real', resources } as const
const reading = { ...real, withoutEffects: true } as const

/** Sources and reductions run only as parts of a pipeline. They have no effects, and a run takes each of their items once. */
type Simulated = Exclude<keyof typeof handlers, 'files.walk' | 'files.sort-by-path'>

const simulations: { readonly [Name in Simulated]: () => Promise<Simulation> } = {
  'math.factorial': () => simulate(handlers['math.factorial'], { n: 5 }, { withoutEffects: true }),
  'math.primes': () => simulate(handlers['math.primes'], { below: 100 }, { withoutEffects: true }),
  'files.digest': () => simulate(handlers['files.digest'], { path: join(directory, 'a') }, reading),
  'receipt.send': () => simulate(handlers['receipt.send'], receipt, real),
}

test.each(Object.entries(simulations))('%s is idempotent', async (task, run) => {
  const found = await run()
  expect(found.task).toBe(task)
  found.assertIdempotent()
})

test('a receipt is delivered once, by requests that all have the same key', async () => {
  keys.length = 0
  const found = await simulations['receipt.send']()
  const effect = `receipts.deliver({ currency: "EUR", orderId: "7", to: "ann@example.org", total: "19.90" }, <idempotency key>)`
  expect(found.effects).toEqual([{ effect, times: 1 }])
  // Before, in and after the step, before and after the request, and after the handler has returned.
  expect(found.points).toBe(6)
  expect(keys.length).toBeGreaterThan(found.runs)
  expect(new Set(keys).size).toBe(1)
})
