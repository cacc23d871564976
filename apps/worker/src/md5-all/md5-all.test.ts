// MD5All of the article "Go Concurrency Patterns: Pipelines and cancellation" across a fleet: its claims, one by one, with real workers
// and a real Redis, over real directories.
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { RunEndedError } from '@bullpen/client'
import { md5AllBounded, md5AllParallel, md5AllSerial } from '@bullpen/tasks'
import { md5Lines } from '@bullpen/tasks/files'
import { evilTree, md5Pipeline } from '@bullpen/tasks/files/fixtures'
import { storedKeys } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { directoryOf, openFleet } from './fleet.fixture.ts'

const SOON = { timeout: '2m' } as const

/** A fleet of two workers, with 24 slots each. */
const fleet = openFleet()
const { client, ledger } = fleet
beforeAll(() => Promise.all([fleet.startWorker('a'), fleet.startWorker('b')]))
beforeEach(() => ledger.reset())
afterAll(() => fleet.close())

describe('MD5All', () => {
  test.each([
    ['serial', md5AllSerial],
    ['parallel', md5AllParallel],
    ['bounded', md5AllBounded],
  ])('%s prints what md5sum prints, sorted by path, for regular files only', async (_, pipeline) => {
    const tree = await evilTree()
    onTestFinished(tree.remove)
    const run = await client.startPipeline(pipeline, { directory: tree.directory })
    const { files } = await run.output(SOON)
    const digests = files.map(({ path, md5 }) => ({ path: join(tree.directory, path), md5 }))
    expect(digests).toEqual(digests.toSorted((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path))))
    expect(md5Lines(digests).join('')).toBe(await md5Pipeline(tree.directory))
  })

  test('serial reads one file at a time, however many workers there are', async () => {
    const directory = await directoryOf(12)
    const run = await client.startPipeline(md5AllSerial, { directory })
    expect((await run.output(SOON)).files).toHaveLength(12)
    expect(ledger).toMatchObject({ started: { length: 12 }, most: 1 })
  })

  test('parallel reads as many files at once as the fleet has slots', async () => {
    const directory = await directoryOf(60)
    ledger.hold()
    const run = await client.startPipeline(md5AllParallel, { directory })
    await eventually(() => ledger.running === 48)
    ledger.release()
    expect((await run.output(SOON)).files).toHaveLength(60)
  })

  test('bounded never reads more than 20 files at once, on all workers together', async () => {
    const directory = await directoryOf(100)
    ledger.hold()
    const run = await client.startPipeline(md5AllBounded, { directory })
    await eventually(() => ledger.running === 20)
    // The walk is held up, too: at most 40 files are between it and the results.
    const full = await eventually(async () => {
      const view = await run.describe()
      return view.stages[0]?.waiting === 20 && view
    })
    expect(full).toMatchObject({ source: { emitted: 40 }, stages: [{ running: 20, waiting: 20, completed: 0 }] })
    ledger.release()
    expect((await run.output(SOON)).files).toHaveLength(100)
    expect(ledger.most).toBe(20)
    expect(new Set(ledger.started.map(({ worker }) => worker))).toEqual(new Set(['a', 'b']))
  })

  test('the first error ends it: nothing more is read, and the running digests are stopped', async () => {
    const directory = await directoryOf(100)
    // One of the digesters finds that its file has been removed. At this time, all of them are busy.
    const allBusy = Promise.withResolvers<void>()
    ledger.hold((path) => !path.endsWith('/0007'))
    ledger.onStart = async (path) => {
      if (ledger.running === 20) allBusy.resolve()
      if (!path.endsWith('/0007')) return
      await allBusy.promise
      await rm(path)
    }
    const run = await client.startPipeline(md5AllBounded, { directory })
    const error = await run.output(SOON).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(RunEndedError)
    const firstError = { stage: 1, position: 7, end: 'dead' }
    expect(error).toMatchObject({ run: { result: 'failed', stopReason: 'first_error', firstError, results: 0 } })
    expect(ledger).toMatchObject({ started: { length: 20 }, aborted: 19, running: 0 })
  })

  test("the walk's own error is looked at after all results", async () => {
    const directory = await directoryOf(30)
    await writeFile(Buffer.concat([Buffer.from(`${directory}/`), Buffer.from([0xfc])]), '')
    ledger.hold((path) => path.endsWith('/0000'))
    const run = await client.startPipeline(md5AllBounded, { directory })
    await eventually(async () => (await run.describe()).source.state === 'failed')
    expect((await run.describe()).state).toBe('running')
    ledger.release()
    const ended = await run.waitUntilEnded(SOON)
    expect(ended).toMatchObject({ result: 'failed', results: 30, errors: 0, stages: [{ completed: 30 }] })
    expect(ended.output).toBeUndefined()
  })
})

describe('fan-in', () => {
  test('results are collected when the last sender has ended, and not before', async () => {
    const directory = await directoryOf(30)
    ledger.hold((path) => path.endsWith('/0029'))
    const run = await client.startPipeline(md5AllBounded, { directory })
    const last = await eventually(async () => {
      const view = await run.describe()
      return view.results === 29 && view.source.state === 'done' && view
    })
    expect(last).toMatchObject({ state: 'running', stages: [{ running: 1 }] })
    ledger.release()
    expect((await run.output(SOON)).files).toHaveLength(30)
  })
})

describe('explicit cancellation', () => {
  test('is a broadcast: one cancel stops the digests of every worker, without a count of them', async () => {
    const directory = await directoryOf(100)
    ledger.hold()
    const run = await client.startPipeline(md5AllBounded, { directory })
    await eventually(() => ledger.running === 20)
    expect(new Set(ledger.started.map(({ worker }) => worker)).size).toBe(2)
    await run.cancel()
    expect(await run.waitUntilEnded(SOON)).toMatchObject({ result: 'cancelled', stopReason: 'cancelled' })
    expect(ledger).toMatchObject({ started: { length: 20 }, aborted: 20, running: 0 })
  })

  test('is seen by a late joiner, which starts none of the digests that were waiting', async () => {
    const late = openFleet()
    onTestFinished(late.close)
    const directory = await directoryOf(100)
    const goOn = Promise.withResolvers<void>()
    // These digests do not look at their signals, so the run cannot end before they do.
    late.ledger.onStart = () => goOn.promise
    await late.startWorker('early', 3)
    const run = await late.client.startPipeline(md5AllBounded, { directory })
    await eventually(async () => late.ledger.running >= 2 && (await run.describe()).stages[0]?.running === 20)
    await run.cancel()
    await late.startWorker('late')
    goOn.resolve()
    expect(await run.waitUntilEnded(SOON)).toMatchObject({ result: 'cancelled' })
    expect(late.ledger.started.filter(({ worker }) => worker === 'late')).toEqual([])
  })
})

describe('stopping short', () => {
  test('must not leak: a cancel in the middle leaves no task, no lock and no key that never expires', async () => {
    const own = openFleet()
    onTestFinished(own.close)
    await Promise.all([own.startWorker('a'), own.startWorker('b')])
    const directory = await directoryOf(100)
    own.ledger.hold()
    const run = await own.client.startPipeline(md5AllBounded, { directory }, { keep: '0s' })
    await eventually(async () => own.ledger.running === 20 && (await run.describe()).stages[0]?.waiting === 20)
    await run.cancel()
    expect(await run.waitUntilEnded(SOON)).toMatchObject({ result: 'cancelled' })
    await run.delete()
    const { redisUrl, namespace } = own
    const expiring = async (isExpiring: boolean) =>
      [...(await storedKeys(redisUrl, `{${namespace}*`))]
        .filter(([, expires]) => expires === isExpiring)
        .map(([key]) => key)
    expect((await expiring(true)).filter((key) => key.startsWith(`{${namespace}:${run.id}}`))).toEqual([])
    // All that stays are the counters, the settings and the bounded streams of the queues, and what belongs to the namespace.
    const ofQueues = /:(id|meta|marker|totals|leader|events|task-events)$/
    const ofNamespace = /:(schema|leader:fencing|leader:registry|fleet:heartbeats|fleet:served)$/
    const left = async () => (await expiring(false)).filter((key) => !ofQueues.test(key) && !ofNamespace.test(key))
    await eventually(async () => (await left()).length === 0).catch(async () => expect(await left()).toEqual([]))
  })
})
