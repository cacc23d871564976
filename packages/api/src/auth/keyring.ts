// Manages the API's keys, which are compared in constant time, and the browser sessions that the keys sign.
import { createHmac, hash, hkdfSync, timingSafeEqual } from 'node:crypto'
import { BlockList, isIPv4 } from 'node:net'
import { type NamedKey, readNamedKey } from '@bullpen/config'

/** Where a request comes from. */
export interface Origin {
  readonly address: string
  /** True if the request passed through a proxy, so that its address does not identify the caller. */
  readonly forwarded: boolean
}

/** A key, whose name several keys may share. */
export interface Key extends NamedKey {
  readonly sessionSecret: Buffer
  /** True for the development key, which is accepted only from this machine. */
  readonly loopbackOnly: boolean
}

export interface Keyring {
  /** The names of all keys. */
  readonly names: readonly string[]
  /**
   * Returns the key with this text if the key is accepted from this origin. Rejecting a wrong text always takes the same time.
   */
  find(text: string, origin: Origin): Key | undefined
  /**
   * Returns a cookie value that is valid until `expiresAt` (ms since 1970) or until the key is removed. `requester` is the name that
   * the user has given, which may be empty.
   */
  issueSession(key: Key, expiresAt: number, requester: string): string
  /** Returns the session with this cookie value, or undefined if the value is not valid now or from this origin. */
  findSession(value: string, origin: Origin, now: number): Session | undefined
}

/** A browser session, which a key has signed. */
export interface Session {
  readonly key: Key
  /** The name of the user for audit records, which cannot be verified. Undefined if the user has not given one. */
  readonly requester: string | undefined
}

const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer')

/** `entry` is a key, or a name and a key with a colon between them. */
function createKey(entry: string, loopbackOnly: boolean): Key {
  const named = readNamedKey(entry)
  const sessionSecret = Buffer.from(hkdfSync('sha256', named.text, '', 'bullpen browser session', 32))
  return { ...named, sessionSecret, loopbackOnly }
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

export function isLoopback(address: string): boolean {
  return loopback.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')
}

/**
 * Returns a function that compares a text with each of these keys. The time that the function takes does not reveal which key
 * matched or how much of the text was right, because it compares the text with every key, in buffers that are as long as the
 * longest key. Hashing the text instead would take eight times as long.
 */
function createMatcher(keys: readonly string[]): (text: string) => readonly boolean[] {
  const size = Math.max(0, ...keys.map((key) => Buffer.byteLength(key)))
  const padded = keys.map((key) => {
    const buffer = Buffer.alloc(size)
    buffer.write(key)
    return buffer
  })
  const given = Buffer.alloc(size)
  return (text) => {
    given.fill(0)
    given.write(text)
    // Padding or truncation could make a text of another length equal to a key, so the lengths are compared too.
    return padded.map((key, i) => timingSafeEqual(key, given) && text.length === keys[i]?.length)
  }
}

/**
 * Creates a keyring. `keys` are accepted from anywhere, whereas `devKey` is accepted only from this machine. Each is a key such as
 * `KEY`, or a key with a name, such as `shop:KEY`.
 */
export function createKeyring(keys: readonly string[], devKey?: string): Keyring {
  const all = [
    ...keys.map((text) => createKey(text, false)),
    ...(devKey === undefined ? [] : [createKey(devKey, true)]),
  ]
  const matches = createMatcher(all.map(({ text }) => text))
  const usable = (key: Key, origin: Origin) => !key.loopbackOnly || (!origin.forwarded && isLoopback(origin.address))
  const sign = (key: Key, content: string) =>
    createHmac('sha256', key.sessionSecret).update(content).digest('base64url')

  return {
    names: [...new Set(all.map(({ name }) => name))],
    find(text, origin) {
      const isMatch = matches(text)
      return all.find((key, i) => isMatch[i] && usable(key, origin))
    },
    issueSession(key, expiresAt, requester) {
      const content = `${expiresAt}.${Buffer.from(requester).toString('base64url')}`
      return `${content}.${sign(key, content)}`
    },
    findSession(value, origin, now) {
      const [expiresAt = '', requester = '', signature = ''] = value.split('.', 3)
      if (!/^\d{1,15}$/.test(expiresAt) || Number(expiresAt) <= now) return undefined
      const given = sha256(signature)
      const content = `${expiresAt}.${requester}`
      const key = all.find((each) => usable(each, origin) && timingSafeEqual(sha256(sign(each, content)), given))
      return key && { key, requester: Buffer.from(requester, 'base64url').toString() || undefined }
    },
  }
}
