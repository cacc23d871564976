import { brokerConformance } from '@bullpen/testing'
import { openMemory } from './memory-backend.fixture.ts'

brokerConformance('the memory broker', openMemory)
