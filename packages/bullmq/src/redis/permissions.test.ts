// The permissions in docs/how-to/redis-settings.md are enough to enqueue, run, cancel and list tasks.
import { readFileSync } from 'node:fs'
import { privateRedis } from '@bullpen/testing'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished } from 'vitest'
import { long, setup, short } from '../setup.fixture.ts'

const PAGE = new URL('../../../../docs/how-to/redis-settings.md', import.meta.url)

it('a user with the documented permissions can enqueue, run, cancel and list tasks', async () => {
  const [, rules = expect.fail()] = /^user bullpen on >PASSWORD (.+)$/m.exec(readFileSync(PAGE, 'utf8')) ?? []
  const server = await privateRedis()
  await server.start()
  const admin = new Redis(server.url)
  onTestFinished(() => admin.disconnect())
  // The test's namespace begins with `t-`.
  await admin.acl('SETUSER', 'bullpen', 'on', '>PASSWORD', ...rules.replaceAll('{bullpen', '{t-').split(' '))
  const stage = await setup({ redisUrl: server.url.replace('redis://', 'redis://bullpen:PASSWORD@') })
  await stage.startPool()
  const completed = await stage.enqueue(short)
  expect(await stage.settled(completed)).toMatchObject({ status: 'completed' })
  const scheduled = await stage.enqueue(long, { delayMs: 60_000 })
  expect(await stage.broker.cancel(scheduled, { stoppable: true })).toBe('cancelled')
  const { tasks } = await stage.broker.list({ queue: 'rig', status: 'cancelled', limit: 10, cursor: undefined })
  expect(tasks.map(({ id }) => id)).toEqual([scheduled])
  expect([...stage.broker.serverProblems().keys()]).toContain('listpack')
  expect(await admin.acl('LOG')).toEqual([])
})
