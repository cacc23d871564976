// Tests that the fault proxy forwards data, holds data back while it is cut, and loses data only when it is reset.
import { type AddressInfo, connect, createServer } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { eventually } from './eventually.ts'
import { type FaultProxy, faultProxy } from './fault-proxy.ts'

async function echoThroughProxy() {
  const received: string[] = []
  let open = 0
  const server = createServer((socket) => {
    open++
    socket.on('close', () => open--)
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      received.push(String(chunk))
      socket.write(chunk)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy = await faultProxy(`redis://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const client = connect(Number(new URL(proxy.url).port), '127.0.0.1')
  const answers: string[] = []
  client.setEncoding('utf8').on('data', (chunk: string) => answers.push(chunk))
  onTestFinished(async () => {
    client.destroy()
    await proxy.close()
    server.close()
  })
  return { proxy, client, answers, received, open: () => open }
}

it('forwards in both directions', async () => {
  const { client, answers } = await echoThroughProxy()
  client.write('one')
  await eventually(() => answers.join('') === 'one')
})

it('holds data back while it is cut, and forwards it when it is mended', async () => {
  const { proxy, client, answers, received } = await echoThroughProxy()
  client.write('one')
  await eventually(() => answers.join('') === 'one')
  proxy.cut()
  await new Promise<void>((resolve) => client.write('two', () => resolve()))
  const other = connect(Number(new URL(proxy.url).port), '127.0.0.1')
  onTestFinished(() => void other.destroy())
  await new Promise<void>((resolve) => other.write('three', () => resolve()))
  expect(received).toEqual(['one'])
  proxy.mend()
  await eventually(() => received.toSorted().join() === 'one,three,two')
  await eventually(() => answers.join('') === 'onetwo')
})

it('forwards delayed data in order, and at once when the delay has ended', async () => {
  const { proxy, client, answers } = await echoThroughProxy()
  proxy.delay(30)
  const sentAt = performance.now()
  client.write('one')
  await eventually(() => answers.join('') === 'one')
  // Timers may be a millisecond early.
  expect(performance.now() - sentAt).toBeGreaterThan(55)
  client.write('two')
  proxy.delay(0)
  client.write('three')
  await eventually(() => answers.join('') === 'onetwothree')
})

it('holds only answers back while its answers are cut', async () => {
  const { proxy, client, answers, received } = await echoThroughProxy()
  proxy.cutAnswers()
  client.write('one')
  await eventually(() => received.join('') === 'one')
  expect(answers).toEqual([])
  proxy.mend()
  await eventually(() => answers.join('') === 'one')
})

it('forwards what it held back, but not the answers, if its answers are cut after it was cut', async () => {
  const { proxy, client, answers, received } = await echoThroughProxy()
  proxy.cut()
  await new Promise<void>((resolve) => client.write('one', () => resolve()))
  proxy.cutAnswers()
  await eventually(() => received.join('') === 'one')
  client.write('two')
  await eventually(() => received.join('') === 'onetwo')
  expect(answers).toEqual([])
  proxy.mend()
  await eventually(() => answers.join('') === 'onetwo')
})

it('closes every connection when it is reset, loses what it held back, and forwards on new connections', async () => {
  const { proxy, client, answers, received } = await echoThroughProxy()
  proxy.cutAnswers()
  client.write('one')
  await eventually(() => received.join('') === 'one')
  const closed = new Promise((resolve) => client.once('close', resolve))
  proxy.reset()
  await closed
  const next = connect(Number(new URL(proxy.url).port), '127.0.0.1')
  onTestFinished(() => void next.destroy())
  const answered = new Promise((resolve) => next.setEncoding('utf8').once('data', resolve))
  next.write('two')
  expect(await answered).toBe('two')
  expect(answers).toEqual([])
})

/** Opens a connection, and returns what the server echoes to it. */
async function echoOf(proxy: FaultProxy, text: string): Promise<string> {
  const client = connect(Number(new URL(proxy.url).port), '127.0.0.1')
  onTestFinished(() => void client.destroy())
  client.write(text)
  return new Promise((resolve) => client.setEncoding('utf8').once('data', resolve))
}

it('silences only the open connections, and forwards neither data nor a close on them', async () => {
  const { proxy, client, answers, received, open } = await echoThroughProxy()
  client.write('one')
  await eventually(() => answers.join('') === 'one')
  proxy.cutAnswers()
  client.write('lost')
  await eventually(() => received.join('') === 'onelost')
  expect(proxy.silence()).toBe(1)
  proxy.mend()
  client.end('two')
  expect(await echoOf(proxy, 'three')).toBe('three')
  expect({ answers, received, open: open() }).toEqual({ answers: ['one'], received: ['one', 'lost', 'three'], open: 2 })
  expect(proxy.silence()).toBe(1)
})

it('loses all of what a delay holds back if it is silenced, also after the sender has closed the connection', async () => {
  const { proxy, client, received } = await echoThroughProxy()
  proxy.delay(100)
  await new Promise<void>((resolve) => client.write('one', () => resolve()))
  // By then, the proxy has read it.
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
  proxy.silence()
  client.destroy()
  expect(await echoOf(proxy, 'two')).toBe('two')
  expect(received).toEqual(['two'])
})

it('connects new clients to the server to which it was moved, and keeps open connections to the previous one', async () => {
  const [one, other] = [await echoThroughProxy(), await echoThroughProxy()]
  one.client.write('one')
  await eventually(() => one.answers.join('') === 'one')
  one.proxy.moveTo(other.proxy.url)
  expect(await echoOf(one.proxy, 'two')).toBe('two')
  one.client.write('three')
  await eventually(() => one.answers.join('') === 'onethree')
  expect([one.received, other.received]).toEqual([['one', 'three'], ['two']])
})

it('closes the connection of a client whose server is gone', async () => {
  const proxy = await faultProxy('redis://127.0.0.1:1')
  onTestFinished(() => proxy.close())
  const client = connect(Number(new URL(proxy.url).port), '127.0.0.1')
  await expect(
    new Promise<unknown>((resolve) => client.on('error', () => {}).once('close', resolve)),
  ).resolves.toBeTypeOf('boolean')
})
