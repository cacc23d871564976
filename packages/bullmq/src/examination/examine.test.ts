// Tests that the examination of plain BullMQ finds queues that BullMQ itself has made, reports their figures, and only reads.
import { createHash } from 'node:crypto'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { examineBullmq } from './examine.ts'

const JOBS = 1_100
const LARGE = 150_000
const HOUR = 3_600_000

/**
 * Starts a Redis with two queues, as BullMQ makes them. Returns the URL of a user that may only read, and the administrator's URL and
 * connection.
 */
async function installation(sent = 5) {
  const server = await privateRedis()
  await server.start()
  const redis = new Redis(server.url)
  onTestFinished(() => redis.disconnect())
  const rules = 'on >secret %R~* -@all +@read +@connection -client|list +info +config|get'
  await redis.acl('SETUSER', 'reader', ...rules.split(' '))

  const connection = { url: server.url }
  const mail = new Queue('mail', { connection, prefix: 'shop:eu' })
  const reports = new Queue('reports', { connection })
  const jobs = Array.from({ length: sent }, (_, n) => ({ name: 'send', data: { n } }))
  await mail.addBulk(jobs)
  await mail.addBulk([{ name: 'send', data: { pad: 'x'.repeat(LARGE) } }])
  const run = async ({ data }: { readonly data: { readonly n?: number } }) => {
    if ((data.n ?? 1) % 100 === 0) throw new Error('declined')
  }
  const worker = new Worker('mail', run, { connection, prefix: 'shop:eu', concurrency: 50 })
  await eventually(async () => (await mail.getJobCountByTypes('wait', 'active')) === 0)
  await worker.close()
  // A worker has died with this job.
  await mail.add('lost', {})
  const dead = new Worker('mail', null, { connection, prefix: 'shop:eu' })
  const lost = await dead.getNextJob('token')
  await redis.del(`shop:eu:mail:${lost?.id}:lock`)
  await redis.hset(`shop:eu:mail:${lost?.id}`, 'processedOn', Date.now() - 2 * HOUR)
  await dead.close()
  await reports.add('late', {}, { delay: HOUR, timestamp: Date.now() - 3 * HOUR })
  await reports.add('waiting', {}, { timestamp: Date.now() - 2 * HOUR - 1_000 })
  await Promise.all([mail.close(), reports.close()])
  return { redis, adminUrl: server.url, url: server.url.replace('redis://', 'redis://reader:secret@') }
}

/** Returns the content and the time to live of each key. */
async function contentsOf(redis: Redis): Promise<ReadonlyMap<string, string>> {
  const keys = (await redis.keys('*')).sort()
  const contents = keys.map(async (key) => {
    const expiresAt = redis.pexpiretime(key)
    // DUMP writes the fields of a large hash in an order that Redis may change at any time.
    const fields = (await redis.type(key)) === 'hash' ? Object.entries(await redis.hgetall(key)).sort() : undefined
    const content = fields === undefined ? await redis.dumpBuffer(key) : JSON.stringify(fields)
    const digest = createHash('sha256')
      .update(content ?? '')
      .digest('hex')
    return [key, `${digest} ${await expiresAt}`] as const
  })
  return new Map(await Promise.all(contents))
}

describe('the examination of plain BullMQ', () => {
  it('reports the risks of each queue with its figures, as a user that may only read, and changes no key', async () => {
    const { redis, url } = await installation(JOBS)
    const before = await contentsOf(redis)
    const examination = await examineBullmq(url)
    expect(await contentsOf(redis)).toEqual(before)

    expect(examination.isComplete).toBe(true)
    expect(examination.queues).toMatchObject([
      { prefix: 'bull', queue: 'reports', waiting: 1, delayed: 1 },
      { prefix: 'shop:eu', queue: 'mail', waiting: 0, active: 1, completed: 1_090, failed: 11 },
    ])
    const problems = Object.fromEntries(
      examination.findings
        .filter(({ queue }) => queue !== undefined)
        .map(({ check, prefix, queue, severity, problem }) => [
          `${prefix}:${queue} ${check}`,
          `${severity}: ${problem}`,
        ]),
    )
    expect(problems).toEqual({
      'shop:eu:mail expired_locks': 'error: 1 of 1 sampled active jobs have no lock; the oldest started 2h ago',
      'shop:eu:mail kept_completed': expect.stringMatching(
        /^warning: 1090 completed jobs, which take about \d+(?:\.\d)? (?:kB|MB), .*none of the sampled jobs has an option/,
      ),
      'shop:eu:mail no_retries': 'warning: 11 of 11 sampled failed jobs (11 in all) had a single attempt',
      'shop:eu:mail large_payloads': expect.stringMatching(/^warning: 1 of \d+ sampled jobs .* the largest 150 kB$/),
      'bull:reports long_wait': 'warning: 1 job waits, the oldest for 2h, with 0 active jobs',
      'bull:reports overdue_jobs': 'error: 1 of the 1 delayed job should have started, the first one 2h ago',
    })
    // This user may not list the connections.
    expect(examination.skipped).toEqual(['no_workers'])
  })

  it('counts the connections of workers, and reports waiting jobs if there are none', async () => {
    const { adminUrl } = await installation()
    const worker = new Worker('mail', async () => {}, {
      connection: { url: adminUrl },
      prefix: 'shop:eu',
      autorun: false,
    })
    onTestFinished(() => worker.close())
    await worker.waitUntilReady()
    const { queues, findings } = await eventually(async () => {
      const examination = await examineBullmq(adminUrl)
      return examination.queues.some(({ workers }) => workers === 1) && examination
    })
    expect(queues.map(({ queue, workers }) => [queue, workers])).toEqual([
      ['reports', 0],
      ['mail', 1],
    ])
    expect(findings.filter(({ check }) => check === 'no_workers')).toMatchObject([
      {
        queue: 'reports',
        problem: 'no worker is connected, but 1 job waits, the oldest for 2h, and 1 delayed job should have started',
      },
    ])
  })

  it('examines only queues with the given prefix or name', async () => {
    const { url } = await installation()
    const names = async (options: Parameters<typeof examineBullmq>[1]) =>
      (await examineBullmq(url, options)).queues.map(({ queue }) => queue)
    expect(await names({ prefix: 'shop:eu' })).toEqual(['mail'])
    expect(await names({ queue: 'reports' })).toEqual(['reports'])
    expect(await names({ prefix: 'bull', queue: 'reports' })).toEqual(['reports'])
    expect(await names({ prefix: 'bull', queue: 'mail' })).toEqual([])
    expect(await names({ prefix: '*' })).toEqual([])
  })

  it('reads as many jobs of a long queue as of any other', async () => {
    const { redis, url } = await installation(JOBS)
    const callsOf = async (command: string) => {
      const stats = await redis.info('commandstats')
      return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
    }
    const before = await callsOf('hmget')
    await examineBullmq(url, { prefix: 'shop:eu', queue: 'mail' })
    // 40 completed jobs, 11 failed ones and the active one, and the settings of the queue.
    expect((await callsOf('hmget')) - before).toBe(53)
  })

  it.each([
    ['redis://127.0.0.1:1', 'redis_unavailable', 'ECONNREFUSED'],
    ['nonsense', 'invalid_configuration', 'invalid Redis URL'],
  ])('of %s fails with %s', async (given, code, message) => {
    await expect(examineBullmq(given)).rejects.toMatchObject({ code, message: expect.stringContaining(message) })
  })

  it('by a user whom Redis refuses fails with unauthorized, without the password', async () => {
    const { adminUrl } = await installation()
    const wrong = adminUrl.replace('redis://', 'redis://reader:wrong@')
    const error: unknown = await examineBullmq(wrong).catch((thrown) => thrown)
    expect(error).toMatchObject({ code: 'unauthorized', message: expect.stringContaining('WRONGPASS') })
    expect(String(error)).not.toContain('wrong@')
  })
})
