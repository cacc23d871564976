// An API process whose log is on standard output. The first line that it prints is its URL.
import { defineCatalogue, defineTask } from '@bullpen/contract'
import { z } from 'zod'
import { createApi } from './create-api.ts'

const [redisUrl = '', namespace = '', key = ''] = process.argv.slice(2)
const task = defineTask({ name: 'mail.send', queue: 'mail', input: z.object({}) })
const config = { redisUrl, namespace, keys: [key], port: 0, metricsPort: 0 } as const
const api = await createApi({ catalogue: defineCatalogue(task), config })
const { url } = await api.listen()
console.log(JSON.stringify({ url }))
