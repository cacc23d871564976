// Opens the sockets of all connections to Redis.
import type { AbstractConnector, RedisOptions, StandaloneConnectionOptions } from 'ioredis'
// biome-ignore lint/style/noRestrictedImports: ioredis exports the class only here.
import { StandaloneConnector } from 'ioredis/built/connectors/index.js'

/**
 * Node may emit several errors of one TLS socket: that of a write, and then that of a read. ioredis listens for the first one only, and
 * any other would end the process.
 */
class Connector extends StandaloneConnector {
  // The type of the option.
  constructor(options: unknown) {
    super(options as StandaloneConnectionOptions)
  }

  override async connect(emit: Parameters<AbstractConnector['connect']>[0]) {
    const stream = await super.connect(emit)
    return stream.on('error', () => {})
  }
}

export const SOCKETS: Required<Pick<RedisOptions, 'Connector'>> = { Connector }
