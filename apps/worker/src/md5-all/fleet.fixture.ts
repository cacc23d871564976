// A fleet of example workers within this process, on a real Redis, with a client and a ledger of all digests.
import { randomUUID } from 'node:crypto'
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { redis } from '@bullpen/bullmq'
import { createClient } from '@bullpen/client'
import { catalogue } from '@bullpen/tasks'
import { type BullpenWorker, createWorker } from '@bullpen/worker'
import { inject, onTestFinished } from 'vitest'
import { handlers } from '../handlers/index.ts'
import { resourcesWith } from '../handlers/resources.fixture.ts'
import { openFileAccess } from '../resources/file-access.ts'
import { digestLedger } from './digest-ledger.fixture.ts'

/** Opens a fleet without workers, in a namespace of its own. Close it at the end. */
export function openFleet() {
  const redisUrl = inject('redisUrl')
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const client = createClient({ transport: redis(redisUrl, { catalogue, namespace }) })
  const workers: BullpenWorker[] = []
  const ledger = digestLedger()

  /** Starts a worker that runs at most `slots` tasks at once. */
  async function startWorker(name: string, slots = 24): Promise<void> {
    const access = await openFileAccess({ roots: [tmpdir()] })
    const around = ledger.of(name)
    const given = resourcesWith({
      files: { ...access, digest: (path, signal) => around(path, signal, access.digest) },
      worker: { name },
    })
    const worker = createWorker({
      catalogue,
      handlers,
      resources: {
        files: { open: async () => given.files },
        receipts: { open: async () => given.receipts },
        worker: { open: async () => given.worker },
      },
      config: { redisUrl, namespace, port: 0, logLevel: 'silent', pools: { files: slots } },
    })
    workers.push(worker)
    await worker.start()
  }

  async function close(): Promise<void> {
    ledger.release()
    await Promise.all(workers.map((worker) => worker.drain({ mode: 'hard' })))
    await client.close()
  }

  return { client, ledger, redisUrl, namespace, startWorker, close }
}

/** Creates a directory that all fleets may read, with this many files, which is removed after the test. */
export async function directoryOf(files: number): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'bullpen-md5-all-')))
  onTestFinished(() => rm(directory, { recursive: true }))
  const names = Array.from({ length: files }, (_, i) => String(i).padStart(4, '0'))
  await Promise.all(names.map((name) => writeFile(join(directory, name), name)))
  return directory
}
