// Handles files.walk. The path of a file is the position in the walk, because a walk is in the order of the paths.
import { at, defineSourceHandler } from '@bullpen/contract'
import { filesWalk } from '@bullpen/tasks'
import { joinPath } from '@bullpen/tasks/files'
import { z } from 'zod'
import type { WorkerResources } from '../resources/index.ts'

const position = z.string().optional()

export default defineSourceHandler<typeof filesWalk, WorkerResources>(
  filesWalk,
  import.meta.url,
  async function* ({ directory, exclude }, { resources, signal }, cursor) {
    const after = position.parse(cursor)
    for await (const name of resources.files.walk(directory, { exclude, after, signal })) {
      yield at(name, { path: joinPath(directory, name) })
    }
  },
)
