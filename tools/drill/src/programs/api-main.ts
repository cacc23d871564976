// Runs an API over the drills' catalogue. The process reports its addresses to its parent, and logs to standard output.
import { createApi } from '@bullpen/api'
import type { ApiConfig } from '@bullpen/config'
import { catalogue } from './catalogue.ts'

/** The message that the process sends when it is ready. */
export interface ApiAddresses {
  readonly url: string
  readonly metricsUrl: string
}

const api = await createApi({ catalogue, config: JSON.parse(process.argv[2] ?? '') as ApiConfig })
// If the drill dies, its API must not be left behind.
process.once('disconnect', () => process.exit(3))
const { url, metricsUrl } = await api.listen()
process.send?.({ url, metricsUrl } satisfies ApiAddresses)
