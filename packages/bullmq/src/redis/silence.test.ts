// Tests when a connection on which nothing arrives is closed, on virtual time and without a network. silent-network.test.ts tests the
// connections of all kinds.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LEADER_TIMES } from '../leader/leader.ts'
import { type ScriptedConnection, scriptedRedis, virtualTime } from './scripted-connection.fixture.ts'
import { OF_PRODUCER, OF_SUBSCRIBER, silentMsOf } from './silence.ts'

/** The time between two checks, by which everything may be late, in ms. */
const CHECK_MS = 250

function setup() {
  const time = virtualTime()
  return { time, open: scriptedRedis(time) }
}

/** Sends a command without waiting for its reply. The command fails if the connection is closed. */
const send = (command: Promise<unknown>): void => void command.catch(() => {})

/** Sends a command every 100 ms, as if other callers of the process used the connection. */
async function use(time: ReturnType<typeof virtualTime>, connection: ScriptedConnection, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 100) {
    send(connection.redis.ping())
    await time.advance(Math.min(100, ms - passed))
  }
}

it('a server that owes a reply for 4 s is silent, and its connection is closed, with the time since it sent something', async () => {
  const { time, open } = setup()
  const connection = await open()
  await time.advance(10_000)
  connection.hang()
  send(connection.redis.ping())
  await time.advance(4_000)
  expect(connection.closed()).toBeUndefined()
  await time.advance(2 * CHECK_MS)
  const { at = 0, error } = connection.closed() ?? {}
  expect(at).toBeLessThanOrEqual(14_000 + 2 * CHECK_MS)
  expect(error).toMatchObject({ code: 'ETIMEDOUT' })
  expect(silentMsOf(error)).toBeGreaterThanOrEqual(4_000)
})

it('a stall of a server for less than 4 s closes no connection, whichever commands are under way', async () => {
  const stall = fc.record({
    ms: fc.integer({ min: 0, max: 3_999 }),
    offset: fc.integer({ min: 0, max: CHECK_MS }),
    blockS: fc.integer({ min: 1, max: 3 }),
    blockedBeforeMs: fc.integer({ min: 0, max: 3_000 }),
    idleMs: fc.integer({ min: 0, max: 5_000 }),
  })
  await fc.assert(
    fc.asyncProperty(stall, async ({ ms, offset, blockS, blockedBeforeMs, idleMs }) => {
      const { time, open } = setup()
      const [plain, blocking, producer, idle] = await Promise.all([open(), open(), open(OF_PRODUCER), open()])
      const all = [plain, blocking, producer, idle]
      await time.advance(offset + idleMs)
      send(blocking.redis.bzpopmin('k', blockS))
      await use(time, plain, Math.min(blockedBeforeMs, blockS * 1_000))
      for (const each of all) each.hang()
      for (const each of [plain, producer]) send(each.redis.ping())
      await time.advance(ms)
      for (const each of all) each.answer()
      blocking.endWait()
      await time.advance(2 * CHECK_MS)
      expect(all.map((each) => each.closed())).toEqual(all.map(() => undefined))
    }),
  )
})

it.each([
  ['producer', OF_PRODUCER],
  ['subscriber', OF_SUBSCRIBER],
])('an idle connection of a %s sends a PING and is closed within 5 s if only it is silent', async (_, options) => {
  const { time, open } = setup()
  const [silent, other] = await Promise.all([open(options), open()])
  await use(time, other, 1_000)
  send(silent.redis.ping())
  await use(time, other, 100)
  const [before, hungAt] = [silent.commands.length, time.now()]
  silent.hang()
  await use(time, other, 6_000)
  expect(silent.commands.slice(before)).toEqual(['ping'])
  expect(silent.closed()?.at).toBeLessThanOrEqual(hungAt + 5_000)
  expect(other.closed()).toBeUndefined()
})

it('an idle connection without PINGs is closed soon after a command, if nothing had arrived long before and only it is silent', async () => {
  const { time, open } = setup()
  const [silent, other] = await Promise.all([open(), open()])
  await use(time, other, 20_000)
  expect(silent.commands).toEqual([])
  silent.hang()
  send(silent.redis.ping())
  await use(time, other, 1_000)
  expect(silent.closed()).toBeUndefined()
  await use(time, other, 3 * CHECK_MS)
  expect(silent.closed()).toBeDefined()
})

it('a command that blocks owes its reply only when its time has passed, and no PING follows it meanwhile', async () => {
  const { time, open } = setup()
  const [blocking, replicating, idle] = await Promise.all([open(OF_PRODUCER), open(), open(OF_PRODUCER)])
  send(blocking.redis.bzpopmin('k', 30))
  send(replicating.redis.wait(9, 30_000))
  await time.advance(30_000)
  expect([blocking.closed(), replicating.closed(), idle.closed()]).toEqual([undefined, undefined, undefined])
  expect(blocking.commands).toEqual(['bzpopmin'])
  // Another connection sends its PINGs while this one waits.
  expect(idle.commands.length).toBeGreaterThanOrEqual(8)
  expect(new Set(idle.commands)).toEqual(new Set(['ping']))
  // The server does not end the waits.
  idle.hang()
  await time.advance(4_000 + 3 * CHECK_MS)
  expect([blocking.closed(), replicating.closed()]).toEqual([expect.anything(), expect.anything()])
})

it('a command that blocks is overdue 1 s after its time if other connections work', async () => {
  const { time, open } = setup()
  const [blocking, other] = await Promise.all([open(), open()])
  send(blocking.redis.bzpopmin('k', 3))
  await use(time, other, 4_000)
  expect(blocking.closed()).toBeUndefined()
  await use(time, other, 3 * CHECK_MS)
  expect(blocking.closed()).toBeDefined()
})

it('a connection is watched again after each reply, and when it is opened after all others were closed', async () => {
  const { time, open } = setup()
  const first = await open(OF_PRODUCER)
  for (let round = 0; round < 5; round++) {
    send(first.redis.ping())
    first.hang()
    await time.advance(3_500)
    first.answer()
    await time.advance(1_000)
    expect(first.closed()).toBeUndefined()
  }
  for (const connection of [first, await open(OF_PRODUCER)]) {
    connection.hang()
    // The connection is idle: a PING shows that the server is silent.
    await time.advance(3_000 + 4_000 + 3 * CHECK_MS)
    expect(connection.closed()).toBeDefined()
  }
  await time.advance(10_000)
  const last = await open()
  last.hang()
  send(last.redis.ping())
  await time.advance(4_000 + 2 * CHECK_MS)
  expect(last.closed()).toBeDefined()
})

it('if one connection to a server is silent, the others on which nothing arrives are closed with it, but not those to another server', async () => {
  const { time, open } = setup()
  const [owing, idle, elsewhere] = await Promise.all([open(), open(), open({}, 2)])
  await time.advance(2_500)
  owing.hang()
  send(owing.redis.ping())
  await time.advance(4_000 + 2 * CHECK_MS)
  expect([owing.closed(), idle.closed(), elsewhere.closed()]).toEqual([expect.anything(), expect.anything(), undefined])
})

it('a command that takes long to send is not taken for one to which Redis owes a reply', async () => {
  const { time, open } = setup()
  const [sending, other] = await Promise.all([open(), open()])
  await use(time, other, 3_000)
  sending.takeNothing()
  sending.hang()
  send(sending.redis.set('k', 'v'))
  await use(time, other, 3_500)
  expect(sending.closed()).toBeUndefined()
})

it('a subscriber to which the leader sends its beats sends no PING, and one that receives nothing does', async () => {
  const { time, open } = setup()
  const [led, alone] = await Promise.all([open(OF_SUBSCRIBER), open(OF_SUBSCRIBER)])
  for (const { redis } of [led, alone]) send(redis.subscribe('c'))
  for (let beat = 0; beat < 12; beat++) {
    led.publish()
    await time.advance(LEADER_TIMES.renewMs)
  }
  expect(led.commands).toEqual(['subscribe'])
  expect(alone.commands.filter((name) => name === 'ping').length).toBeGreaterThanOrEqual(5)
})

it('the time for which the event loop was blocked does not count', async () => {
  const { time, open } = setup()
  const connection = await open()
  await time.advance(1_000)
  connection.hang()
  send(connection.redis.ping())
  // A check has found that a reply is due.
  await time.advance(2 * CHECK_MS)
  await time.block(60_000)
  await time.advance(2_500)
  expect(connection.closed()).toBeUndefined()
  connection.answer()
  await time.advance(10_000)
  expect(connection.closed()).toBeUndefined()
})
