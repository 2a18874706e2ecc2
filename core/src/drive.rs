//! The one loop, shared by production, simulation and tests.

use crate::exit::Exit;
use crate::fault::Faults;
use crate::mirror::Mirror;
use crate::world::World;

/// Runs `mirror` in `world` until it has come to its end.
pub async fn drive(mirror: &mut Mirror<impl Faults>, world: &mut impl World) -> Exit {
    loop {
        for command in mirror.take_commands() {
            world.submit(command);
        }
        if let Some(exit) = mirror.exit() {
            return exit;
        }
        let (now, event) = world.next(mirror.wake_at()).await;
        mirror.handle(now, event);
    }
}
