// The commands that the clients of a process share: each client runs its own text on its own connection, also in transactions.
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished, vi } from 'vitest'
import { shareCommands } from './shared-commands.ts'

type Command = (...args: string[]) => Promise<unknown>

const ECHO = { numberOfKeys: 0, lua: 'return ARGV[1]' }

function opened(redis: Redis = shareCommands(new Redis(inject('redisUrl')))) {
  onTestFinished(() => redis.disconnect())
  // ioredis adds defined commands as methods, which its types can't know.
  const commands = redis as unknown as Readonly<Record<string, Command>>
  const sent = vi.spyOn(redis, 'sendCommand')
  return { redis, commands, names: () => sent.mock.calls.map(([command]) => command.name) }
}

it('a text is defined once for all clients and their duplicates, and each sends it once on its own connection', async () => {
  const name = `test:${randomUUID()}`
  const [first, second] = [opened(), opened()]
  const third = opened(second.redis.duplicate())
  for (const { redis, commands, names } of [first, second, third]) {
    redis.defineCommand(name, ECHO)
    expect(commands[name]).toBe(first.commands[name])
    expect(await commands[name]?.('a')).toBe('a')
    expect(await commands[`${name}Buffer`]?.('b')).toEqual(Buffer.from('b'))
    expect(names().slice(-2)).toEqual(['eval', 'evalsha'])
  }
})

it('a shared command runs in the transactions of its own client', async () => {
  const name = `test:${randomUUID()}`
  const [first, second] = [opened(), opened()]
  for (const { redis } of [first, second]) {
    redis.defineCommand(name, ECHO)
    const transaction = redis.multi()
    // The defined commands are methods of the transaction as well.
    void (transaction as unknown as Readonly<Record<string, Command>>)[name]?.('a')
    expect(await transaction.exec()).toEqual([[null, 'a']])
  }
})

it('a client that defines another text under the same name runs its own', async () => {
  const name = `test:${randomUUID()}`
  const [first, second, third] = [opened(), opened(), opened()]
  first.redis.defineCommand(name, { numberOfKeys: 0, lua: 'return 1' })
  second.redis.defineCommand(name, { numberOfKeys: 0, lua: 'return 2' })
  third.redis.defineCommand(name, { numberOfKeys: 0, lua: 'return 1' })
  const replies = [first, second, third].map(({ commands }) => commands[name]?.())
  expect(await Promise.all(replies)).toEqual([1, 2, 1])
})
