// Turns the address of a Redis into the options of the connections to it: user, password, TLS and sockets.
import { readFileSync } from 'node:fs'
import type { RedisAddress, RedisTlsFiles } from '@bullpen/contract/internal'
import { SOCKETS } from './connector.ts'

/** Returns the options that every connection to a server or to a node of a cluster needs. */
export function accessOptions({ tls, username, password }: RedisAddress) {
  return {
    ...SOCKETS,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls: tlsOptions(tls) }),
  }
}

/** ioredis copies these options for each connection, and so reads the files again. A renewed certificate needs no restart. */
function tlsOptions({ ca, cert, key }: RedisTlsFiles) {
  return Object.defineProperties({}, { ...file('ca', ca), ...file('cert', cert), ...file('key', key) })
}

function file(name: string, path: string | undefined): PropertyDescriptorMap {
  return path === undefined ? {} : { [name]: { enumerable: true, get: () => readFileSync(path) } }
}
