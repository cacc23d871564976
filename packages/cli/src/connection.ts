// Reads the API's address and key from the options and the environment.
import { type Client, createClient, type HttpOptions, http } from '@bullpen/client'
import type { Duration } from '@bullpen/contract'
import { UsageError } from './arguments/usage-error.ts'

const DEFAULT_API = 'http://127.0.0.1:8080'

/**
 * How long to retry a request. It is long enough for an API to restart, and short enough for a user who is waiting at a terminal.
 */
export const RETRY_FOR = '2s'

export interface ConnectOptions extends HttpOptions {
  /** Defaults to {@link RETRY_FOR}. */
  readonly retryFor?: Duration
}

interface Connection {
  readonly api: string
  readonly key: string
}

/** The options of a command that waits, such as for a task to end, also while the API is deployed again. */
export const WHILE_WAITING = { retryFor: '10s' } as const satisfies ConnectOptions

/** Returns the API's address and key. An empty value counts as unset. @throws UsageError, whose message never contains the key. */
export function readConnection(values: Partial<Connection>, env: NodeJS.ProcessEnv): Connection {
  const api = values.api || env['BULLPEN_API'] || DEFAULT_API
  const url = URL.canParse(api) ? new URL(api) : undefined
  if (url !== undefined && (url.username !== '' || url.password !== '')) {
    throw new UsageError('the API address contains a user name or password; set BULLPEN_KEY instead')
  }
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`the API address is '${api}'; expected an http or https URL`)
  }
  // The message does not quote the address, because a query may contain a secret.
  if (url.search !== '' || url.hash !== '') {
    throw new UsageError(
      'the API address contains a query or a fragment; expected an address such as https://host/path',
    )
  }
  const key = values.key || env['BULLPEN_KEY']
  if (key === undefined || key === '') throw new UsageError('no API key; set BULLPEN_KEY')
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new UsageError('the API key contains a space, a line break or a character outside ASCII')
  }
  return { api, key }
}

export function connect({ api, key }: Connection, options: ConnectOptions = {}): Client {
  const { retryFor = RETRY_FOR, ...httpOptions } = options
  return createClient({ transport: http(api, key, httpOptions), retryFor })
}
