import { apiConfig, createApi, runUntilSignalled } from '@bullpen/api'
import { catalogue } from './catalogue.ts'

process.exit(await runUntilSignalled(() => createApi({ catalogue, config: apiConfig() })))
