// Calls of one script: how they are encoded, how many commands they take, and what happens if Redis does not have the script.
import { hash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { privateRedis } from '@bullpen/testing'
import { eventually, faultProxy } from '@bullpen/testkit'
import fc from 'fast-check'
import { Command, Redis } from 'ioredis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { RECONNECTING } from './redis-client.ts'
import { encodeCommand, markedCommand, scriptCall } from './script-calls.ts'

const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('', 'ü', '水', '\r\n'))
const binary = fc.uint8Array().map((bytes) => Buffer.from(bytes))

it('a command is encoded as ioredis encodes it', () => {
  const args = fc.array(fc.oneof(text, binary, fc.integer(), fc.constantFrom(null, undefined)), { maxLength: 30 })
  fc.assert(
    fc.property(args, (given) => {
      // The types of ioredis do not allow null and undefined, which BullMQ passes to it.
      const command = new Command('evalsha', given as string[])
      expect(encodeCommand(['evalsha', ...given])).toEqual(Buffer.from(command.toWritable({})))
    }),
  )
})

it('a repeat is encoded as if its mark had been encoded with the other arguments', () => {
  const args = fc.array(fc.oneof(text, binary), { minLength: 1, maxLength: 30 })
  fc.assert(
    fc.property(args, (given) => {
      expect(markedCommand(encodeCommand(given))).toEqual(encodeCommand([...given, '1']))
    }),
  )
})

it('every call is encoded with its own keys, whatever it has in common with earlier calls', () => {
  const key = fc.constantFrom('a', 'b', 'c')
  const calls = fc.array(fc.tuple(key, key, key, text), { minLength: 1, maxLength: 20 })
  fc.assert(
    fc.property(calls, (given) => {
      const sent: Command[] = []
      const script = { name: 'test:none', numberOfKeys: 3, lua: '#!lua' }
      const client = {
        stream: {},
        'test:none': () => Promise.resolve(),
        sendCommand(command: Command) {
          sent.push(command)
          return Promise.resolve()
        },
      }
      // A real connection would not show the bytes that are written.
      const call = scriptCall(client as unknown as Redis, script)
      void call(['', '', '', ''])
      for (const args of given) void call(args)
      const sha = hash('sha1', script.lua)
      expect(sent.map((command) => command.toWritable({}))).toEqual(
        given.map((args) => encodeCommand(['EVALSHA', sha, 3, ...args])),
      )
    }),
  )
})

/** Appends its argument to its key, and returns the length. */
const APPEND = {
  name: 'test:append',
  numberOfKeys: 1,
  lua: `#!lua\nreturn redis.call('RPUSH', KEYS[1], ARGV[1])`,
}

describe('a script', () => {
  async function stage() {
    const server = await privateRedis()
    await server.start()
    const proxy = await faultProxy(server.url)
    const redis = new Redis(proxy.url, RECONNECTING)
    redis.on('error', () => {})
    onTestFinished(async () => {
      redis.disconnect()
      await proxy.close()
    })
    redis.defineCommand(APPEND.name, APPEND)
    await eventually(() => redis.status === 'ready')
    const call = scriptCall(redis, APPEND)
    const key = `t-${randomUUID()}`
    const sent = vi.spyOn(redis, 'sendCommand')
    return {
      server,
      proxy,
      redis,
      append: (value: string | Buffer) => call([key, value]),
      stored: () => redis.lrangeBuffer(key, 0, -1).then((values) => values.map((value) => value.toString('latin1'))),
      /** The names of the commands that have been sent since the last call. */
      commands: () => sent.mock.calls.splice(0).map(([command]) => command.name),
    }
  }

  it('is sent with its text once for each connection, and then by its hash', async () => {
    const { redis, append, stored, commands, proxy } = await stage()
    expect([await append('a'), await append(Buffer.of(0xff)), await append('ü')]).toEqual([1, 2, 3])
    expect(commands()).toEqual(['eval', 'evalsha', 'evalsha'])
    expect(await stored()).toEqual(['a', '\xff', Buffer.from('ü').toString('latin1')])
    const isReconnected = once(redis, 'ready')
    proxy.reset()
    await isReconnected
    commands()
    expect([await append('b'), await append('c')]).toEqual([4, 5])
    expect(commands()).toEqual(['eval', 'evalsha'])
  })

  it('is sent with its text again if Redis has lost it, and no call fails', async () => {
    const { redis, append, stored } = await stage()
    await append('0')
    await append('1')
    await redis.script('FLUSH')
    expect(await Promise.all(['2', '3', '4'].map((value) => append(value)))).toEqual([3, 4, 5])
    expect(await stored()).toEqual(['0', '1', '2', '3', '4'])
  })

  it('is sent again if the connection is lost before the reply, also to a server that does not have it', async () => {
    const { server, proxy, append } = await stage()
    await append('0')
    await append('1')
    proxy.cut()
    const replies = ['2', '3'].map((value) => append(value))
    await server.crash()
    await server.start()
    proxy.reset()
    // The new server does not have the list either, unless it was saved.
    const lengths = (await Promise.all(replies)) as number[]
    expect(lengths[1]).toBe((lengths[0] ?? 0) + 1)
  })

  it('rejects with the error of the script', async () => {
    const { redis, append } = await stage()
    await append('0')
    await redis.flushall()
    const call = scriptCall(redis, { ...APPEND, name: 'test:fails', lua: '#!lua\nreturn redis.error_reply("NO ROOM")' })
    redis.defineCommand('test:fails', { numberOfKeys: 1, lua: '#!lua\nreturn redis.error_reply("NO ROOM")' })
    await expect(call(['k', 'v'])).rejects.toThrow('NO ROOM')
    await expect(call(['k', 'v'])).rejects.toThrow('NO ROOM')
  })
})
