// Where the API is and which key opens it, from options and environment.
import { type Client, createClient } from '@bullpen/client'
import { UsageError } from './arguments/usage-error.ts'

const HERE = 'http://127.0.0.1:8080'

/** Somebody waits: long enough for an API that is just restarting. */
const RETRY_FOR = '2s'

interface Where {
  readonly api: string
  readonly key: string
}

/** Empty counts as unset. @throws UsageError; no message repeats the key. */
export function readConnection(values: Partial<Where>, env: NodeJS.ProcessEnv): Where {
  const api = values.api || env['BULLPEN_API'] || HERE
  const url = URL.canParse(api) ? new URL(api) : undefined
  if (url !== undefined && (url.username !== '' || url.password !== '')) {
    throw new UsageError('the API address holds a user or a password; the key goes into BULLPEN_KEY')
  }
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`the API address is '${api}'; it is an http or https URL`)
  }
  const key = values.key || env['BULLPEN_KEY']
  if (key === undefined || key === '') throw new UsageError('there is no key: set BULLPEN_KEY')
  if (!/^[\x21-\x7e]+$/.test(key)) throw new UsageError('the key holds a space, a line end or another odd character')
  return { api, key }
}

export function connect({ api, key }: Where): Client {
  return createClient({ baseUrl: api, key, retryFor: RETRY_FOR })
}
