// Asks a Redis server over a raw socket whether it is ready and which process it is. This module does not need any installed
// packages.
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import tls from 'node:tls'

const encode = (args) => `*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join('')}`

/** Returns the first complete reply in `text`: a line (`+PONG`, `-ERR …`), a bulk string or a list. Undefined if incomplete. */
function firstReply(text) {
  const end = text.indexOf('\r\n')
  if (end < 0) return undefined
  const line = text.slice(0, end)
  const rest = text.slice(end + 2)
  const count = Number(line.slice(1))
  if (count === -1 && '$*'.includes(line[0])) return { value: null, rest }
  if (line.startsWith('$')) {
    return rest.length < count + 2 ? undefined : { value: rest.slice(0, count), rest: rest.slice(count + 2) }
  }
  if (!line.startsWith('*')) return { value: line, rest }
  let list = { value: [], rest }
  for (let i = 0; i < count; i++) {
    const item = firstReply(list.rest)
    if (item === undefined) return undefined
    list = { value: [...list.value, item.value], rest: item.rest }
  }
  return list
}

const LATE = 'LATE'
const failure = (message, code) => Object.assign(new Error(message), { code })
/** What OpenSSL says of bytes that are not TLS. If Node notices them while it writes, the code of the error is only EPROTO. */
const NO_TLS = /:wrong version number:|:packet length too long:/

/** Returns what is wrong if only one of the client and the server seems to use TLS, or undefined. The server has not replied. */
function tlsMismatch(usesTls, { code, message }) {
  if (!usesTls && code === 'ECONNRESET') {
    return 'it closes the connection before it replies, as if its port required TLS; use rediss:// instead of redis://'
  }
  if (usesTls && (code === LATE || code === 'ECONNRESET' || NO_TLS.test(message))) {
    return 'it does not complete a TLS handshake, as if its port did not use TLS; use redis:// instead of rediss://'
  }
  return undefined
}

/**
 * Sends one command to the server at `url` (redis: or rediss:, with or without credentials) and returns its reply.
 * @param {string} url
 * @param {readonly string[]} command
 * @param {{ timeout?: number }} [options] `timeout` is in ms and defaults to 10,000
 * @returns {Promise<string | string[] | null>} a status line or error with its first character; the content of a string or list
 */
export function askRedis(url, command, { timeout = 10_000 } = {}) {
  const { protocol, hostname, port, username, password } = new URL(url)
  const address = { host: hostname.replace(/^\[|\]$/g, '') || '127.0.0.1', port: Number(port || 6379) }
  const credentials = [username, password].filter((part) => part !== '').map(decodeURIComponent)
  const commands = password === '' ? [command] : [['AUTH', ...credentials], command]
  return new Promise((resolve, reject) => {
    const usesTls = protocol === 'rediss:'
    const socket = usesTls ? tls.connect({ ...address, servername: address.host }) : net.connect(address)
    const isOpen = { tcp: false, tls: false }
    let text = ''
    let open = commands.length
    const finish = (act) => {
      clearTimeout(timer)
      socket.destroy()
      act()
    }
    const fail = (error) =>
      finish(() => {
        // A server may end the connection with an alert of TLS.
        const hasReplied = text !== '' && !text.startsWith('\x15')
        const mismatch = isOpen.tcp && !isOpen.tls && !hasReplied ? tlsMismatch(usesTls, error) : undefined
        reject(mismatch === undefined ? error : new Error(mismatch))
      })
    const timer = setTimeout(() => fail(failure(`no reply within ${timeout} ms`, LATE)), timeout)
    socket.setEncoding('latin1')
    socket.once('connect', () => {
      isOpen.tcp = true
    })
    socket.once('secureConnect', () => {
      isOpen.tls = true
    })
    socket.on('error', fail)
    socket.on('close', () => fail(failure('the connection was closed before the reply', 'ECONNRESET')))
    socket.on('data', (chunk) => {
      text += chunk
      for (let reply = firstReply(text); reply; reply = firstReply(text)) {
        text = reply.rest
        open -= 1
        const { value } = reply
        if (open === 0 || value?.[0] === '-') return finish(() => resolve(value))
      }
    })
    socket.write(commands.map(encode).join(''))
  })
}

/**
 * Waits until the server replies +PONG, even if it is still loading its data.
 * @param {string} url
 * @param {{ within?: number, giveUp?: () => boolean }} [options] `within` is in ms and defaults to 3000; at least one PING is
 * sent
 * @returns {Promise<{ ok: true } | { ok: false, reason: string }>}
 */
export async function pingRedis(url, { within = 3000, giveUp = () => false } = {}) {
  const deadline = performance.now() + within
  let reason = 'no reply'
  do {
    try {
      const reply = await askRedis(url, ['PING'], { timeout: 2000 })
      if (reply === '+PONG') return { ok: true }
      reason = `it answered ${reply}`
      if (!/^-(LOADING|MASTERDOWN|BUSY)/.test(reply)) return { ok: false, reason }
    } catch (error) {
      reason = error.message || error.code || String(error)
    }
    await sleep(20)
  } while (performance.now() < deadline && !giveUp())
  return { ok: false, reason }
}

/** Returns the URL with its password masked, for use in messages. */
export function withoutPassword(url) {
  const shown = new URL(url)
  if (shown.password !== '') shown.password = '***'
  return shown.href
}
