// Turns the address of a Redis into the options of the connections to it: user, password, TLS and sockets.
import type { RedisAddress, RedisTlsFiles } from '@bullpen/contract/internal'
import { readTlsFile } from '@bullpen/contract/node'
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

function file(name: keyof RedisTlsFiles, path: string | undefined): PropertyDescriptorMap {
  return path === undefined ? {} : { [name]: { enumerable: true, get: () => readTlsFile(name, path) } }
}
