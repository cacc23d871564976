// The example API, which serves the example catalogue over HTTP.
import { apiConfig, createApi, runUntilSignalled } from '@bullpen/api'
import { catalogue } from '@bullpen/tasks'

const config = apiConfig()
process.exit(await runUntilSignalled(() => createApi({ catalogue, config })))
