import { definePipeline, runPipeline } from '@bullpen/pipeline'
import { digestFile, filesBelow, linesOf } from './files.ts'

const digestTree = definePipeline('digest-tree').source(filesBelow).map(digestFile, { concurrency: 20 }).reduce(linesOf)

console.log(await runPipeline(digestTree, process.argv[2] ?? '.'))
