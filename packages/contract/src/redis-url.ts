// Reads and checks every part of the URL of a Redis server or of a Redis Cluster's nodes, so that no part reaches the Redis client
// unchecked.

/** What the connections to a Redis need, be it a server or a cluster. */
interface RedisAccess {
  /** Undefined for connections without TLS. */
  readonly tls: RedisTlsFiles | undefined
  readonly username: string | undefined
  readonly password: string | undefined
}

export interface RedisServerAddress extends RedisAccess, RedisNode {
  readonly kind: 'server'
  readonly database: number
  /** 4 or 6 for addresses of this IP version only, and 0 for both. */
  readonly family: 0 | 4 | 6
}

export interface RedisClusterAddress extends RedisAccess {
  readonly kind: 'cluster'
  /** The nodes to contact first. One reachable node is enough to find all the others. */
  readonly nodes: readonly RedisNode[]
}

export type RedisAddress = RedisServerAddress | RedisClusterAddress

/** Paths of PEM files. Without `ca`, certificates are checked against the CAs that Node trusts. */
export interface RedisTlsFiles {
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
}

export interface RedisNode {
  readonly host: string
  readonly port: number
}

/** What {@link readRedisUrl} accepts, as the end of the sentence "expected …". */
export const REDIS_URLS =
  'a URL such as redis://USER:PASSWORD@127.0.0.1:6379/0, or redis+cluster://HOST:PORT,HOST:PORT for the nodes of a Redis Cluster (with TLS: rediss://, rediss+cluster://)'

const DEFAULT_PORT = 6379
const MAX_PORT = 65_535
const URL_PARTS =
  /^redis(?<s>s?)(?<cluster>\+cluster)?:\/\/(?:(?<login>[^/?#]*)@)?(?<hosts>[^/?#]*)(?:\/(?<path>[^?#]*))?(?:\?(?<query>[^#]*))?(?<hash>#.*)?$/i
/** Matches a name, an IPv4 address or an IPv6 address in brackets, followed by a port unless the port is 6379. */
const NODE = /^(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::(\d{1,5}))?$/i
const DATABASE = /^(0|[1-9]\d{0,8})?$/
const OPTIONS = ['family', 'ca', 'cert', 'key']

/**
 * Reads `redis://USER:PASSWORD@HOST:PORT/DATABASE` for one server, and `redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT` for a
 * cluster, which has only one database. All parts but a host are optional. Blanks around the URL are ignored. The query may contain
 * `family` (for a server), and with TLS the paths `ca`, `cert` and `key`. Returns the fault if the URL is not valid. A fault never
 * repeats a part of the URL, because any part may be a piece of a password.
 */
export function readRedisUrl(url: string): RedisAddress | { readonly kind: 'invalid'; readonly fault: string } {
  try {
    return read(url.trim())
  } catch (error) {
    if (error instanceof Fault) return { kind: 'invalid', fault: error.message }
    throw error
  }
}

class Fault extends Error {}

function read(url: string): RedisAddress {
  if (/\s/.test(url)) throw new Fault('it contains a space or a line break')
  const parts = URL_PARTS.exec(url)?.groups
  if (parts === undefined) throw new Fault('it does not begin with a known scheme')
  const { s, cluster, login = '', hosts = '', path = '', query = '', hash } = parts
  if (hash !== undefined) throw new Fault("it contains '#', which must be written as %23 in a password")
  const nodes = (cluster === undefined ? [hosts] : hosts.split(',')).map(nodeIn)
  const { family, ...files } = optionsIn(query)
  if (s === '' && Object.keys(files).length > 0) throw new Fault('ca, cert and key require TLS, as in rediss://')
  if ((files.cert === undefined) !== (files.key === undefined)) throw new Fault('cert and key must be given together')
  const access = { tls: s === '' ? undefined : files, ...credentials(login) }
  if (cluster === undefined) {
    if (!DATABASE.test(path)) throw new Fault('its path is not the number of a database')
    return { kind: 'server', ...(nodes[0] as RedisNode), ...access, database: Number(path), family: familyOf(family) }
  }
  if (path !== '') throw new Fault('a cluster has only database 0, so the URL has no path')
  if (family !== undefined) throw new Fault('family is not an option of a cluster')
  return { kind: 'cluster', nodes, ...access }
}

function credentials(login: string): Pick<RedisAccess, 'username' | 'password'> {
  const [name = '', ...words] = login.split(':')
  const username = decoded(name, 'user') || undefined
  const password = decoded(words.join(':'), 'password') || undefined
  // The client would log in as the default user.
  if (username !== undefined && password === undefined) throw new Fault('it has a user without a password')
  return { username, password }
}

function nodeIn(text: string): RedisNode {
  const [, v6, name, digits] = NODE.exec(text) ?? []
  const host = v6 ?? name
  if (host === undefined) {
    throw new Fault(
      'its host is missing or not valid; put an IPv6 address in brackets, and percent-encode the characters @ : / ? # % of a password',
    )
  }
  if (v6 !== undefined && !URL.canParse(`http://[${v6}]`)) throw new Fault('its host is not an IPv6 address')
  const port = Number(digits ?? DEFAULT_PORT)
  if (port === 0 || port > MAX_PORT) throw new Fault(`its port is not a number from 1 to ${MAX_PORT}`)
  return { host, port }
}

function optionsIn(query: string): RedisTlsFiles & { readonly family?: string } {
  const given = query === '' ? [] : query.split('&').map((option) => option.split('='))
  const names = given.map(([name = '']) => name)
  if (!names.every((name) => OPTIONS.includes(name))) {
    throw new Fault('its query has an option other than family, ca, cert and key')
  }
  if (new Set(names).size < names.length) throw new Fault('its query has the same option twice')
  if (!given.every(([, value, more]) => value && more === undefined)) throw new Fault('its query has an invalid value')
  return Object.fromEntries(given.map(([name, value = '']) => [name, decoded(value, 'query')]))
}

function familyOf(text = '0'): 0 | 4 | 6 {
  const family = ([0, 4, 6] as const).find((version) => `${version}` === text)
  if (family === undefined) throw new Fault('its family is not 0, 4 or 6')
  return family
}

function decoded(text: string, part: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Fault(`the percent encoding of its ${part} is not valid`)
  }
}

/** Returns the URL with these files as options, so that every connection that is opened with the URL uses them. */
export function withTlsFiles(url: string, files: RedisTlsFiles): string {
  const options = Object.entries(files).filter(([, path]) => path !== undefined)
  if (options.length === 0) return url
  const text = options.map(([name, path = '']) => `${name}=${encodeURIComponent(path)}`).join('&')
  return `${url.trim()}${url.includes('?') ? '&' : '?'}${text}`
}
