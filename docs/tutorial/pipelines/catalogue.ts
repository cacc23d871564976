import { defineCatalogue, definePipeline, defineReducer, defineSource, defineTask } from '@bullpen/contract'
import { z } from 'zod'

const tree = z.object({ directory: z.string() })
const file = z.object({ path: z.string() })
const digested = z.object({ path: z.string(), md5: z.string() })

export const walk = defineSource({ name: 'files.walk', queue: 'files', input: tree, item: file })
export const digest = defineTask({ name: 'files.digest', queue: 'files', input: file, output: digested })
export const list = defineReducer({
  name: 'files.list',
  queue: 'files',
  input: tree,
  item: digested,
  output: z.string(),
})
export const digestTree = definePipeline('files.digest-tree').source(walk).map(digest, { concurrency: 20 }).reduce(list)

export const catalogue = defineCatalogue(walk, digest, list, digestTree)
