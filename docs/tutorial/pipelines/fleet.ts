import { redis } from '@bullpen/bullmq'
import { createClient } from '@bullpen/client'
import { catalogue, digestTree } from './catalogue.ts'

const { REDIS_URL = 'redis://127.0.0.1:6379', BULLPEN_NAMESPACE: namespace } = process.env
const client = createClient({ transport: redis(REDIS_URL, { catalogue, ...(namespace && { namespace }) }) })

const run = await client.startPipeline(digestTree, { directory: process.argv[2] ?? '.' })
console.log(await run.output({ timeout: '10m' }))
const { stages, source } = await run.describe()
console.error(`${source.emitted} files, ${stages[0]?.completed} digests`)
await client.close()
