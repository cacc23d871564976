import { runPipeline } from '@bullpen/pipeline'
import { digestTree } from './catalogue.ts'
import { handlers } from './handlers.ts'

console.log(await runPipeline(digestTree, { directory: process.argv[2] ?? '.' }, { handlers }))
