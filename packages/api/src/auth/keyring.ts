// The keys that open the API: comparing them in constant time, and the browser sessions that they sign.
import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { BlockList, isIPv4 } from 'node:net'

/** Where a request comes from. */
export interface Origin {
  readonly address: string
  /** It came through a proxy, so that the address says nothing about who asks. */
  readonly forwarded: boolean
}

export interface Key {
  readonly digest: Buffer
  /** The digest's beginning: tells keys apart, and nothing of the key itself. */
  readonly print: string
  readonly sessionSecret: Buffer
  readonly loopbackOnly: boolean
}

export interface Keyring {
  /** The key that the text is, if it may be used from there. Takes the same time for every wrong one. */
  find(text: string, origin: Origin): Key | undefined
  /** A cookie's value for whoever has shown this key; it ends with the key or at `expiresAt` (ms since 1970). */
  issueSession(key: Key, expiresAt: number): string
  acceptsSession(value: string, origin: Origin, now: number): boolean
}

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()

function makeKey(text: string, loopbackOnly: boolean): Key {
  const digest = sha256(text)
  return {
    digest,
    print: digest.toString('hex').slice(0, 8),
    sessionSecret: Buffer.from(hkdfSync('sha256', text, '', 'bullpen browser session', 32)),
    loopbackOnly,
  }
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

export function isLoopback(address: string): boolean {
  return loopback.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')
}

/** `keys` open the API from anywhere, `devKey` from this machine alone. */
export function createKeyring(keys: readonly string[], devKey?: string): Keyring {
  const all = [...keys.map((text) => makeKey(text, false)), ...(devKey === undefined ? [] : [makeKey(devKey, true)])]
  const usable = (key: Key, origin: Origin) => !key.loopbackOnly || (!origin.forwarded && isLoopback(origin.address))
  const sign = (key: Key, expiresAt: string) =>
    createHmac('sha256', key.sessionSecret).update(expiresAt).digest('base64url')

  return {
    find(text, origin) {
      const digest = sha256(text)
      // Every key is compared, found or not: the time tells nothing about which one it was.
      const matching = all.filter((key) => timingSafeEqual(key.digest, digest))
      return matching.find((key) => usable(key, origin))
    },
    issueSession: (key, expiresAt) => `${expiresAt}.${sign(key, String(expiresAt))}`,
    acceptsSession(value, origin, now) {
      const [expiresAt = '', signature = ''] = value.split('.', 2)
      if (!/^\d{1,15}$/.test(expiresAt) || Number(expiresAt) <= now) return false
      const given = sha256(signature)
      return all.some((key) => usable(key, origin) && timingSafeEqual(sha256(sign(key, expiresAt)), given))
    },
  }
}
