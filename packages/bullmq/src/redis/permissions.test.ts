// The permissions in docs/how-to/redis-settings.md are enough to enqueue, run, cancel and list tasks.
import { readFileSync } from 'node:fs'
import { privateRedis } from '@bullpen/testing'
import { Redis } from 'ioredis'
import { expect, it, onTestFinished, vi } from 'vitest'
import { long, setup, short } from '../setup.fixture.ts'

const PAGE = new URL('../../../../docs/how-to/redis-settings.md', import.meta.url)

/** Starts a Redis server with the documented user. Returns the user's URL, and a connection of the administrator. */
async function serverWithUser(change = (rules: string) => rules) {
  const [, rules = expect.fail()] = /^user bullpen on >PASSWORD (.+)$/m.exec(readFileSync(PAGE, 'utf8')) ?? []
  const server = await privateRedis()
  await server.start()
  const admin = new Redis(server.url)
  onTestFinished(() => admin.disconnect())
  // The test's namespace begins with `t-`.
  await admin.acl('SETUSER', 'bullpen', 'on', '>PASSWORD', ...change(rules).replaceAll('{bullpen', '{t-').split(' '))
  return { admin, redisUrl: server.url.replace('redis://', 'redis://bullpen:PASSWORD@') }
}

it('a user with the documented permissions can enqueue, run, cancel and list tasks', async () => {
  const { admin, redisUrl } = await serverWithUser()
  const stage = await setup({ redisUrl })
  await stage.startPool()
  const completed = await stage.enqueue(short)
  expect(await stage.settled(completed)).toMatchObject({ status: 'completed' })
  const scheduled = await stage.enqueue(long, { delayMs: 60_000 })
  expect(await stage.broker.cancel(scheduled, { stoppable: true })).toBe('cancelled')
  await expect(stage.enqueue(short, { durability: 'replicated' })).rejects.toThrow('none has confirmed it within')
  const { tasks } = await stage.broker.list({ queue: 'rig', status: 'cancelled', limit: 10, cursor: undefined })
  expect(tasks.map(({ id }) => id)).toEqual([scheduled])
  expect([...stage.broker.serverProblems().keys()]).toContain('listpack')
  expect(await admin.acl('LOG')).toEqual([])
})

it('a user without INFO can enqueue, but can start no worker, and ioredis prints that it skips the ready check', async () => {
  const printed = vi.spyOn(console, 'warn').mockImplementation(() => {})
  onTestFinished(() => printed.mockRestore())
  const { redisUrl } = await serverWithUser((rules) => rules.replace(' +info', ' -info'))
  const stage = await setup({ redisUrl })
  expect(await stage.broker.find(await stage.enqueue(short))).toMatchObject({ status: 'waiting' })
  await expect(stage.startPool()).rejects.toThrow("NOPERM this user has no permissions to run the 'info' command")
  const lines = printed.mock.calls.map(([line]) => line)
  expect(new Set(lines.map((line) => `${line}`.slice(0, 'Skipping the ready check'.length)))).toEqual(
    new Set(['Skipping the ready check']),
  )
})

it.each([
  ['INFO', ' +info', ' -info'],
  ['CONFIG GET', ' +config|get', ''],
])('a user without %s can enqueue, and the diagnosis names the command', async (command, permitted, refused) => {
  const printed = vi.spyOn(console, 'warn').mockImplementation(() => {})
  onTestFinished(() => printed.mockRestore())
  const { redisUrl } = await serverWithUser((rules) => rules.replace(permitted, refused))
  const stage = await setup({ redisUrl })
  await stage.enqueue(short)
  expect(await stage.broker.servers()).toMatchObject([{ refused: [command] }])
})

it('if Redis does not permit a command of a script, its error does not name the command, but ACL LOG does', async () => {
  const { admin, redisUrl } = await serverWithUser((rules) => rules.replace(' +time', ' -time'))
  const stage = await setup({ redisUrl })
  await expect(stage.enqueue(short)).rejects.toThrow(/rejected a command: .* can't run this command or subcommand/)
  expect(((await admin.acl('LOG')) as unknown[][]).flat()).toContain('time')
})

it('a user who may not write to the keys of a queue is no longer ready, even if its connection is open', async () => {
  const { admin, redisUrl } = await serverWithUser()
  const { broker } = await setup({ redisUrl })
  await broker.ping()
  await admin.acl('SETUSER', 'bullpen', 'resetkeys', '~nothing*')
  await expect(broker.ping()).rejects.toThrow('NOPERM')
})
