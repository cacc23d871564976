// Parses the URL of a single Redis server or of a Redis Cluster's nodes.
import { z } from 'zod'

export type RedisAddress =
  | { readonly kind: 'server'; readonly url: string }
  | {
      readonly kind: 'cluster'
      /** The nodes to contact first. One reachable node is enough to find all the others. */
      readonly nodes: readonly RedisNode[]
      readonly tls: boolean
      readonly username: string | undefined
      readonly password: string | undefined
    }

export interface RedisNode {
  readonly host: string
  readonly port: number
}

/** What {@link readRedisUrl} accepts, as the end of the sentence "expected …". */
export const REDIS_URLS =
  'a URL such as redis://127.0.0.1:6379, or redis+cluster://HOST:PORT,HOST:PORT for the nodes of a Redis Cluster (with TLS: rediss://, rediss+cluster://)'

const DEFAULT_PORT = 6379
const MAX_PORT = 65_535
const server = z.url({ protocol: /^rediss?$/ })
const CLUSTER = /^redis(s?)\+cluster:\/\/(?:([^@/]*)@)?([^@/?#]+)\/?$/
/** Matches a name, an IPv4 address or an IPv6 address in brackets, followed by a port unless the port is 6379. */
const NODE = /^(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::(\d{1,5}))?$/i

/**
 * Reads `redis://` and `rediss://` URLs of one server, and `redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT`, where the
 * credentials are optional and the port defaults to 6379. A cluster has only one database, so the URL does not name one. Returns
 * undefined if the URL has any other form.
 */
export function readRedisUrl(url: string): RedisAddress | undefined {
  const [, s, credentials = '', list] = CLUSTER.exec(url) ?? []
  if (list === undefined) return server.safeParse(url).success ? { kind: 'server', url } : undefined
  const nodes = list.split(',').map(readNode)
  if (!nodes.every((node) => node !== undefined)) return undefined
  const [username = '', ...words] = credentials.split(':')
  const [user, password] = [username, words.join(':')].map(decode)
  return user === undefined || password === undefined
    ? undefined
    : { kind: 'cluster', nodes, tls: s === 's', username: user || undefined, password: password || undefined }
}

function readNode(text: string): RedisNode | undefined {
  const [, v6, name, digits] = NODE.exec(text) ?? []
  const host = v6 ?? name
  const port = Number(digits ?? DEFAULT_PORT)
  return host === undefined || port === 0 || port > MAX_PORT ? undefined : { host, port }
}

/** Decodes percent-encoded characters. Returns undefined if the encoding is invalid. */
function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
